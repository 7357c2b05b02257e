package v1alpha1

import (
	"encoding/json"
	"testing"
)

func TestSize(t *testing.T) {
	for name, tc := range map[string]struct {
		text       string
		cores, mib int
		unreadable bool
	}{
		"absent":               {text: `{}`},
		"integers":             {text: `{"cpu":4,"memory":16}`, cores: 4, mib: 16 << 10},
		"texts":                {text: `{"cpu":"4","memory":"16Gi"}`, cores: 4, mib: 16 << 10},
		"less than a GiB":      {text: `{"memory":"512Mi"}`, mib: 512},
		"the most":             {text: `{"cpu":1024,"memory":"64Ti"}`, cores: 1024, mib: 64 << 20},
		"the most Mi":          {text: `{"memory":"67108864Mi"}`, mib: 64 << 20},
		"the most GiB":         {text: `{"memory":65536}`, mib: 64 << 20},
		"texts without amount": {text: `{"cpu":"many","memory":"much"}`},
		"an object":            {text: `{"cpu":{}}`, unreadable: true},
		"a list":               {text: `{"memory":[1]}`, unreadable: true},
	} {
		t.Run(name, func(t *testing.T) {
			var spec struct {
				CPU    *VMCores  `json:"cpu,omitempty"`
				Memory *VMMemory `json:"memory,omitempty"`
			}
			if err := json.Unmarshal([]byte(tc.text), &spec); (err != nil) != tc.unreadable {
				t.Fatalf("Unmarshal: %v", err)
			}
			if tc.unreadable {
				return
			}
			if got := spec.CPU.Count(); got != tc.cores {
				t.Errorf("%d cores, want %d", got, tc.cores)
			}
			if got := spec.Memory.MiB(); got != tc.mib {
				t.Errorf("%d MiB, want %d", got, tc.mib)
			}
			if got, err := json.Marshal(spec); err != nil || string(got) != tc.text {
				t.Errorf("Marshal returned %s, %v, want %s", got, err, tc.text)
			}
		})
	}
}
