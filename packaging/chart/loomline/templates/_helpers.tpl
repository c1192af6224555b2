{{- define "loomline.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "loomline.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "loomline.labels" -}}
{{ include "loomline.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end -}}

{{- define "loomline.image" -}}
{{- $repository := required "image.repository is required: name the repository of the image, for example registry.example.org/loomline" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "loomline.config" -}}
{{- $config := required "config is required: pass the configuration with --set-file config=loomline.toml" .Values.config -}}
{{- if not (regexMatch `(?m)^\s*\[?\s*tenants\s*[.\]=]` $config) -}}
{{- fail "config has no tenant: add [tenants.NAME.keys.KEY] with the hash of a key, or the server refuses the address of the pod" -}}
{{- end -}}
{{- if .Values.database.secretName -}}
{{- if not (regexMatch `(?m)^\s*(store\s*\.\s*)?url_env\s*=\s*["']LOOMLINE_DATABASE["']` $config) -}}
{{- fail "config does not name the database: add [store] with url_env = \"LOOMLINE_DATABASE\"" -}}
{{- end -}}
{{- if regexMatch `(?m)^\s*(server\s*\.\s*)?node\s*=` $config -}}
{{- fail "config names the node: remove it from [server], because all replicas have this file and each needs a name of its own" -}}
{{- end -}}
{{- end -}}
{{- $config -}}
{{- end -}}

{{- define "loomline.replicas" -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- if not .Values.database.secretName -}}
{{- fail "replicas needs a database: set database.secretName, because one process owns a store in a file" -}}
{{- end -}}
{{- if .Values.persistence.existingClaim -}}
{{- fail "persistence.existingClaim is for one replica: each replica needs a data directory of its own" -}}
{{- end -}}
{{- end -}}
{{- .Values.replicas -}}
{{- end -}}
