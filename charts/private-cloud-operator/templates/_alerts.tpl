{{/*
Removes from a PrometheusRule the alerts that values disable, and sets the lease of the release in the others, for (list ROOT RULE).
Prints nothing.
*/}}
{{- define "private-cloud-operator.setAlerts" -}}
{{- $values := (index . 0).Values -}}
{{- $lease := include "private-cloud-operator.lease" (default dict $values.cloudSelector) | quote -}}
{{- $defaultLease := include "private-cloud-operator.defaultLease" . | quote -}}
{{- range $group := (index . 1).spec.groups -}}
{{- $rules := list -}}
{{- range $rule := $group.rules -}}
{{- if not (has $rule.alert $values.monitoring.prometheusRule.disabled) -}}
{{- $rules = append $rules (set $rule "expr" (replace $defaultLease $lease $rule.expr)) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $group "rules" $rules -}}
{{- end -}}
{{- end -}}
