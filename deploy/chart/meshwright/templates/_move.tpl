{{- /* "yes" if the store has the CA of a mesh, as far as Helm can see. A move that has begun has written a record without
a CA. */ -}}
{{- define "meshwright.storeHasCa" -}}
{{- $custody := lookup "v1" "Secret" .Release.Namespace "meshwright-custody" -}}
{{- if dig "data" "authority" "" $custody | b64dec | contains "\"ca\":" }}yes{{ end -}}
{{- end -}}

{{- /* Name of the claim whose content moves into the store; empty if none is left to be moved. */ -}}
{{- define "meshwright.movedClaim" -}}
{{- $home := .Release.Namespace -}}
{{- $claim := lookup "v1" "PersistentVolumeClaim" $home "state-meshwright-0" -}}
{{- $set := lookup "apps/v1" "StatefulSet" $home "meshwright" -}}
{{- if .Values.persistence.moveClaim -}}
{{ .Values.persistence.moveClaim }}
{{- else if and $claim (or $set (not (include "meshwright.storeHasCa" .))) -}}
{{- if eq (dig "spec" "persistentVolumeClaimRetentionPolicy" "whenDeleted" "" $set) "Delete" -}}
{{- fail "the claim state-meshwright-0 would be deleted with its StatefulSet, and with it the CA: upgrade with store=directory,persistence.keep=true first" -}}
{{- end -}}
state-meshwright-0
{{- end -}}
{{- end -}}

{{- /* Fails where a server with a new claim would make a new CA, although the mesh has one in the store. */ -}}
{{- define "meshwright.requireMovedBack" -}}
{{- if include "meshwright.storeHasCa" . -}}
{{- if not (lookup "v1" "PersistentVolumeClaim" .Release.Namespace "state-meshwright-0") -}}
{{- fail "the mesh is in the store kubernetes: move it back first (docs/operate/high-availability.md), or delete the Secret meshwright-custody for a new mesh" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Fails where servers would wait for ever for the definition of records, which the chart may not install. */ -}}
{{- define "meshwright.requireRecords" -}}
{{- $cluster := lookup "v1" "Namespace" "" "kube-system" -}}
{{- $records := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "records.state.meshwright.dev" -}}
{{- if and $cluster (not .Values.crds.install) (not $records) -}}
{{- fail "store kubernetes needs the definition of records, and crds.install is false: run `meshwright crds --kind Record | kubectl apply --server-side -f -` first, or set store to directory" -}}
{{- end -}}
{{- end -}}

{{- define "meshwright.moveLabels" -}}
app.kubernetes.io/name: meshwright
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: move
{{ include "meshwright.about" . }}
{{- end -}}

{{- /* Given a mapping of the root and a claim: the Pod that moves the claim's content into the store. */ -}}
{{- define "meshwright.movePod" -}}
{{- $claim := .claim -}}
{{- with .root -}}
metadata:
  labels:
    {{- include "meshwright.moveLabels" . | nindent 4 }}
spec:
  serviceAccountName: meshwright
  restartPolicy: Never
  {{- include "meshwright.pullSecrets" . | nindent 2 }}
  securityContext:
    {{- include "meshwright.user" . | nindent 4 }}
  containers:
  - name: move
    image: {{ include "meshwright.image" (dict "root" . "image" .Values.image) | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [state, move, --config=/etc/meshwright/server/config.yaml, --state=/state/meshwright, --wait=300]
    env:
    - name: POD_NAMESPACE
      valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
    {{- with .Values.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    securityContext:
      {{- include "meshwright.confined" . | nindent 6 }}
    volumeMounts:
    - {name: state, mountPath: /state}
    - {name: settings, mountPath: /etc/meshwright/server, readOnly: true}
    {{- with .Values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
  - name: state
    persistentVolumeClaim: {claimName: {{ $claim }}}
  - name: settings
    configMap: {name: meshwright}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- include "meshwright.place" . | nindent 2 }}
{{- end -}}
{{- end -}}
