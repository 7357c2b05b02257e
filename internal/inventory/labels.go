package inventory

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Owner labels, which the operator sets on each server that it creates. UID and
// Cluster together prove which object owns a server; Namespace and Name name it.
const (
	UIDLabel       = "samplecontroller.k8s.io/uid"
	ClusterLabel   = "samplecontroller.k8s.io/cluster"
	NamespaceLabel = "samplecontroller.k8s.io/namespace"
	NameLabel      = "samplecontroller.k8s.io/name"
)

// TagsLabel is a label of a server that has tags. Its value is the keys of the labels that
// are the tags, sorted and separated by commas. The other labels are those of somebody else.
const TagsLabel = "samplecontroller.k8s.io/tags"

// MaxTags is the most tags of a server.
const MaxTags = 16

// WithTags adds tags and their TagsLabel to labels, which may be nil if there are no tags.
func WithTags(labels, tags map[string]string) {
	if len(tags) == 0 {
		return
	}
	maps.Copy(labels, tags)
	labels[TagsLabel] = strings.Join(slices.Sorted(maps.Keys(tags)), ",")
}

// TagKeys returns the keys of the tags of a server with these labels, at most MaxTags. A key
// that TagsLabel has although it is none of a tag is left out, as those of owner labels are.
func TagKeys(labels map[string]string) []string {
	text := labels[TagsLabel]
	if text == "" {
		return nil
	}
	var keys []string
	for key := range strings.SplitSeq(text, ",") {
		if key != "" && !strings.Contains(key, "/") && len(keys) < MaxTags {
			keys = append(keys, key)
		}
	}
	return keys
}

// tagsOf returns the tags among the labels of a server, with their TagsLabel, as one text;
// empty without TagsLabel.
func tagsOf(labels map[string]string) string {
	text, tagged := labels[TagsLabel]
	if !tagged {
		return ""
	}
	tags := map[string]string{TagsLabel: text}
	for _, key := range TagKeys(labels) {
		if value, ok := labels[key]; ok {
			tags[key] = value
		}
	}
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false) // which would make texts longer
	_ = encoder.Encode(tags)
	return strings.TrimSuffix(encoded.String(), "\n")
}

// withTags adds what tagsOf returned to labels, which may be nil.
func withTags(labels map[string]string, tags string) map[string]string {
	if tags != "" {
		_ = json.Unmarshal([]byte(tags), &labels)
	}
	return labels
}
