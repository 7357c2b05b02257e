{{/* The requirements of a label selector, as JSON {"all": [{key, operator, values}]}. */}}
{{- define "private-cloud-operator.requirements" -}}
{{- $all := list -}}
{{- range $key, $value := .matchLabels -}}
{{- $all = append $all (dict "key" $key "operator" "In" "values" (list $value)) -}}
{{- end -}}
{{- dict "all" (concat $all (default list .matchExpressions)) | toJson -}}
{{- end -}}

{{/* A label selector in the syntax of --cloud-selector. */}}
{{- define "private-cloud-operator.cloudSelector" -}}
{{- $parts := list -}}
{{- range (include "private-cloud-operator.requirements" . | fromJson).all -}}
{{- if eq .operator "Exists" -}}
{{- $parts = append $parts .key -}}
{{- else if eq .operator "DoesNotExist" -}}
{{- $parts = append $parts (printf "!%s" .key) -}}
{{- else -}}
{{- $parts = append $parts (printf "%s %s (%s)" .key (lower .operator) (join "," .values)) -}}
{{- end -}}
{{- end -}}
{{- join "," $parts -}}
{{- end -}}

{{/* The lease of a manager without --cloud-selector. */}}
{{- define "private-cloud-operator.defaultLease" -}}
private-cloud-operator.samplecontroller.k8s.io
{{- end -}}

{{/* The lease of a manager with this selector, which may be empty: internal/tenancy computes it alike. */}}
{{- define "private-cloud-operator.lease" -}}
{{- $parts := list -}}
{{- range (include "private-cloud-operator.requirements" . | fromJson).all -}}
{{- $operator := get (dict "In" "in" "NotIn" "notin" "Exists" "exists" "DoesNotExist" "!") .operator -}}
{{- $values := list -}}
{{- range default list .values | uniq | sortAlpha -}}
{{- $values = append $values (quote .) -}}
{{- end -}}
{{- $parts = append $parts (printf "%s %s [%s]" .key $operator (join " " $values)) -}}
{{- end -}}
{{- include "private-cloud-operator.defaultLease" . -}}
{{- with $parts | uniq | sortAlpha | join "," }}-{{ sha256sum . | trunc 10 }}{{ end -}}
{{- end -}}
