package main

import (
	"strings"
	"testing"
)

func TestInvalidCloudSelectorIsRefusedAtTheStart(t *testing.T) {
	for _, selector := range []string{"shard in", "shard=a b", "{shard: east}", "shard=east,"} {
		t.Run(selector, func(t *testing.T) {
			err := run(t.Context(), flags{namespace: "private-cloud-system", cloudSelector: selector}, nil)
			if err == nil || !strings.Contains(err.Error(), "--cloud-selector") || !strings.Contains(err.Error(), selector) {
				t.Errorf("run ended with %v, want an error that names the flag and its value", err)
			}
		})
	}
}
