{{/* The prefix of the names of objects. The longest name has 27 characters more, and names of Services have at most 63. */}}
{{- define "private-cloud-operator.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := printf "%s-%s" .Release.Name $name -}}
{{- if .Values.fullnameOverride -}}
{{- $full = .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- $full = .Release.Name -}}
{{- end -}}
{{- $full | replace "." "-" | trunc 36 | trimSuffix "-" -}}
{{- end -}}

{{/*
The text of files/NAME.yaml, for (list ROOT NAME): YAML documents with the names and the namespace of the release, and with
the label app.kubernetes.io/instance beside each app.kubernetes.io/name, also in selectors, so that two releases in a
namespace do not select each other's pods.
*/}}
{{- define "private-cloud-operator.manifests" -}}
{{- $root := index . 0 -}}
{{- $text := $root.Files.Get (printf "files/%s.yaml" (index . 1)) -}}
{{- $text = replace "private-cloud-operator-system" "@namespace@" $text -}}
{{- $label := "${1}app.kubernetes.io/instance: \"@release@\"\n${1}app.kubernetes.io/name: @chart@" -}}
{{- $text = regexReplaceAll "(?m)^( *)app\\.kubernetes\\.io/name: private-cloud-operator" $text $label -}}
{{- $text = replace "private-cloud-operator-" (printf "%s-" (include "private-cloud-operator.fullname" $root)) $text -}}
{{- $text | replace "@chart@" $root.Chart.Name | replace "@release@" $root.Release.Name | replace "@namespace@" $root.Release.Namespace -}}
{{- end -}}

{{/* The YAML document of an object, for (list ROOT OBJECT), with the labels that all objects have. */}}
{{- define "private-cloud-operator.object" -}}
{{- $root := index . 0 -}}
{{- $object := index . 1 -}}
{{- $version := printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $labels := dict "helm.sh/chart" $version "app.kubernetes.io/managed-by" $root.Release.Service "app.kubernetes.io/instance" $root.Release.Name -}}
{{- $_ := set $object.metadata "labels" (mustMergeOverwrite (dict) $root.Values.commonLabels (default dict $object.metadata.labels) $labels) -}}
{{- if or $root.Values.networkPolicy.enabled (ne $object.kind "NetworkPolicy") }}
---
{{ toYaml $object }}
{{- end }}
{{- end -}}
