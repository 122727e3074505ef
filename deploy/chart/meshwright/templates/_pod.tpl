{{- /* Template of the Pods of the control plane, for the StatefulSet and for the Deployment. */ -}}
{{- define "meshwright.pod" -}}
{{- $shared := eq (include "meshwright.store" .) "kubernetes" -}}
metadata:
  labels:
    {{- include "meshwright.selector" . | nindent 4 }}
  annotations:
    meshwright.dev/settings: {{ include "meshwright.settings" . | fromYaml | toJson | sha256sum | quote }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: meshwright
  terminationGracePeriodSeconds: {{ include "meshwright.terminationSeconds" . }}
  {{- include "meshwright.pullSecrets" . | nindent 2 }}
  securityContext:
    {{- include "meshwright.user" . | nindent 4 }}
  containers:
  - name: meshwright
    image: {{ include "meshwright.image" (dict "root" . "image" .Values.image) | quote }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    args: [serve, --config=/etc/meshwright/server/config.yaml]
    env:
    - {name: MESHWRIGHT_MESH, value: ""}               # the image reads manifests of /mesh otherwise
    - {name: MESHWRIGHT_STATE, value: /state/meshwright}  # a folder of its own, which nobody else may enter
    - name: POD_NAMESPACE
      valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
    {{- if $shared }}
    - name: POD_NAME
      valueFrom: {fieldRef: {fieldPath: metadata.name}}
    - name: POD_IP
      valueFrom: {fieldRef: {fieldPath: status.podIP}}
    {{- end }}
    ports:
    - {name: ads, containerPort: 15128}
    - {name: enrolment, containerPort: 15130}
    - {name: renewal, containerPort: 15131}
    - {name: http, containerPort: 9091}
    {{- if .Values.webhook.enabled }}
    - {name: webhook, containerPort: 9443}
    {{- end }}
    {{- if $shared }}
    - {name: peers, containerPort: 15132}          # the other servers, at the Pod's address
    {{- end }}
    startupProbe:                              # a first start may wait for who signs, and has no port open until then
      httpGet: {path: /healthz/live, port: http}
      periodSeconds: 1
      failureThreshold: 300
    livenessProbe:
      httpGet: {path: /healthz/live, port: http}
      periodSeconds: 10
    readinessProbe:
      httpGet: {path: /healthz/ready, port: http}
      periodSeconds: 5
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
  - name: settings
    configMap: {name: meshwright}
  {{- if $shared }}
  - name: state                                # what is the server's own: answers of the API server, and sockets
    emptyDir: {sizeLimit: 1Gi}
  {{- else if not .Values.persistence.enabled }}
  - name: state                                # gone with the Pod, and with it the CA: for trying it out
    emptyDir: {}
  {{- end }}
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- include "meshwright.place" . | nindent 2 }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $shared }}
  topologySpreadConstraints:                   # over nodes and zones, but an unschedulable Pod would serve nobody
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "meshwright.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]        # the Pods of one update, because those before it end
  {{- end }}
  {{- end }}
{{- end -}}

{{- /* Nodes and priority of Pods. */ -}}
{{- define "meshwright.place" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "meshwright.user" -}}
runAsNonRoot: true
runAsUser: 1337
runAsGroup: 1337
fsGroup: 1337
fsGroupChangePolicy: OnRootMismatch   # else keys are made the group's at each start, and the server refuses them
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "meshwright.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
