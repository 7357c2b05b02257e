{{/* The image of a component, for (list ROOT IMAGE). */}}
{{- define "private-cloud-operator.image" -}}
{{- $image := index . 1 -}}
{{- $tag := default (printf "v%s" (index . 0).Chart.AppVersion) $image.tag -}}
{{- printf "%s:%s" $image.repository $tag -}}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/* Sets in a Deployment what all components have as values, for (list ROOT DEPLOYMENT VALUES). Prints nothing. */}}
{{- define "private-cloud-operator.setPod" -}}
{{- $root := index . 0 -}}
{{- $deployment := index . 1 -}}
{{- $values := index . 2 -}}
{{- $template := $deployment.spec.template -}}
{{- $container := first $template.spec.containers -}}
{{- if hasKey $values "replicas" -}}
{{- $_ := set $deployment.spec "replicas" $values.replicas -}}
{{- end -}}
{{- $_ := set $container "image" (include "private-cloud-operator.image" (list $root $values.image)) -}}
{{- with $values.image.pullPolicy -}}
{{- $_ := set $container "imagePullPolicy" . -}}
{{- end -}}
{{- with $root.Values.imagePullSecrets -}}
{{- $_ := set $template.spec "imagePullSecrets" . -}}
{{- end -}}
{{- $_ := set $container "resources" $values.resources -}}
{{- $_ := set $container "args" (concat $container.args $values.extraArgs) -}}
{{- with $values.extraEnv -}}
{{- $_ := set $container "env" (concat (default list $container.env) .) -}}
{{- end -}}
{{- with $values.podAnnotations -}}
{{- $_ := set $template.metadata "annotations" (mustMergeOverwrite (dict) (default dict $template.metadata.annotations) .) -}}
{{- end -}}
{{- $_ := set $template.metadata "labels" (mustMergeOverwrite (dict) $root.Values.commonLabels $values.podLabels $template.metadata.labels) -}}
{{- range list "priorityClassName" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" -}}
{{- if index $values . -}}
{{- $_ := set $template.spec . (index $values .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Sets in the Deployment of the manager what values determine, for (list ROOT DEPLOYMENT). Prints nothing. */}}
{{- define "private-cloud-operator.setManager" -}}
{{- $root := index . 0 -}}
{{- $deployment := index . 1 -}}
{{- $values := $root.Values -}}
{{- $container := first $deployment.spec.template.spec.containers -}}
{{- $args := $container.args -}}
{{- if and $values.mockCloud.enabled $values.defaultCloudEndpoint -}}
{{- fail "the Cloud \"default\" has one endpoint: set either mockCloud.enabled or defaultCloudEndpoint" -}}
{{- else if $values.mockCloud.enabled -}}
{{- $args = append $args (printf "--default-cloud-endpoint=http://%s-mock-cloud:8080" (include "private-cloud-operator.fullname" $root)) -}}
{{- else if $values.defaultCloudEndpoint -}}
{{- $args = append $args (printf "--default-cloud-endpoint=%s" $values.defaultCloudEndpoint) -}}
{{- end -}}
{{- with include "private-cloud-operator.cloudSelector" (default dict $values.cloudSelector) -}}
{{- $args = append $args (printf "--cloud-selector=%s" .) -}}
{{- end -}}
{{- with $values.probeNetworks -}}
{{- $args = append $args (printf "--probe-networks=%s" (join "," .)) -}}
{{- end -}}
{{- if ne $values.logLevel "info" -}}
{{- $args = append $args (printf "--zap-log-level=%s" $values.logLevel) -}}
{{- end -}}
{{- if $values.webhook.enabled -}}
{{- $args = append $args (printf "--webhook-cert-path=%s" (include "private-cloud-operator.certPath" $root)) -}}
{{- $_ := set $container "ports" (append $container.ports (dict "name" "webhook" "containerPort" 9443)) -}}
{{- $mount := dict "name" "webhook-cert" "mountPath" (include "private-cloud-operator.certPath" $root) "readOnly" true -}}
{{- $_ = set $container "volumeMounts" (list $mount) -}}
{{- $volume := dict "name" "webhook-cert" "secret" (dict "secretName" (include "private-cloud-operator.certSecret" $root)) -}}
{{- $_ = set $deployment.spec.template.spec "volumes" (list $volume) -}}
{{- end -}}
{{- $_ := set $container "args" $args -}}
{{- include "private-cloud-operator.setPod" (list $root $deployment $values) -}}
{{- end -}}

{{- define "private-cloud-operator.certPath" -}}
/tmp/k8s-webhook-server/serving-certs
{{- end -}}

{{/* The Secret with the certificate of the webhook. */}}
{{- define "private-cloud-operator.certSecret" -}}
{{- if .Values.webhook.certManager.enabled -}}
{{- include "private-cloud-operator.fullname" . }}-webhook-cert
{{- else -}}
{{- required "without webhook.certManager.enabled, set webhook.secretName to the Secret with the certificate of the webhook" .Values.webhook.secretName -}}
{{- end -}}
{{- end -}}
