{{- /* Objects of a namespace have the same names in every revision; those of the cluster have the revision's. */ -}}
{{- define "meshwright.clusterName" -}}
meshwright{{ with .Values.revision }}-{{ . }}{{ end }}
{{- end -}}

{{- /* The ConfigMap by which Pods believe the control plane. */ -}}
{{- define "meshwright.roots" -}}
{{ .Values.settings.roots_config_map | default "meshwright-roots" }}
{{- end -}}

{{- /* Where the CA and the ledger are. Values of a chart without this choice (--reuse-values) mean a directory. */ -}}
{{- define "meshwright.store" -}}
{{ .Values.store | default "directory" }}
{{- end -}}

{{- define "meshwright.replicas" -}}
{{ .Values.replicas | default (eq (include "meshwright.store" .) "kubernetes" | ternary 2 1) }}
{{- end -}}

{{- /* Seconds from SIGTERM to SIGKILL: all that the settings give streams, and 25 for the server itself. A server of
several gives them 5 and 20 seconds if the settings do not say otherwise. */ -}}
{{- define "meshwright.terminationSeconds" -}}
{{- $settings := .Values.settings -}}
{{- $several := eq (include "meshwright.store" .) "kubernetes" -}}
{{- $delay := $settings.shutdown_delay_seconds | default ($several | ternary 5 0) -}}
{{- $spread := $settings.shutdown_spread_seconds | default ($several | ternary 20 0) -}}
{{- addf 25 $delay $spread ($settings.drain_seconds | default 5) | ceil | int -}}
{{- end -}}

{{- define "meshwright.selector" -}}
app.kubernetes.io/name: meshwright
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: control-plane
{{- end -}}

{{- define "meshwright.labels" -}}
{{ include "meshwright.selector" . }}
{{ include "meshwright.about" . }}
{{- end -}}

{{- define "meshwright.about" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: meshwright
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- with .Values.revision }}
meshwright.dev/revision: {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "meshwright.pullSecrets" -}}
{{- with .Values.imagePullSecrets -}}
imagePullSecrets:
{{- range . }}
- name: {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Given a mapping of the root and an image: where that is. */ -}}
{{- define "meshwright.image" -}}
{{ with .image.registry }}{{ . }}/{{ end }}{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
