{{- /* Objects of a namespace have the same names in every revision; those of the cluster have the revision's. */ -}}
{{- define "meshwright.clusterName" -}}
meshwright{{ with .Values.revision }}-{{ . }}{{ end }}
{{- end -}}

{{- /* The ConfigMap by which Pods believe the control plane. */ -}}
{{- define "meshwright.roots" -}}
{{ .Values.settings.roots_config_map | default "meshwright-roots" }}
{{- end -}}

{{- /* Seconds from SIGTERM to SIGKILL: all that the settings give streams, and 25 for the server itself. */ -}}
{{- define "meshwright.terminationSeconds" -}}
{{- $settings := .Values.settings -}}
{{- $waits := addf ($settings.shutdown_delay_seconds | default 0) ($settings.shutdown_spread_seconds | default 0) -}}
{{- addf 25 $waits ($settings.drain_seconds | default 5) | ceil | int -}}
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
