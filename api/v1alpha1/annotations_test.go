package v1alpha1

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSwitchIsOnWithAnyValueButFalse(t *testing.T) {
	for key, on := range map[string]func(metav1.Object) bool{
		PausedAnnotation: Paused, DeletionProtectionAnnotation: Protected, DeleteFirstAnnotation: DeletedFirst,
	} {
		for _, value := range []string{"true", "True", "TRUE", "yes", "1", "", "0", "no", "False", " false", "false"} {
			want := value != "false"
			if got := on(&metav1.ObjectMeta{Annotations: map[string]string{key: value}}); got != want {
				t.Errorf("%s=%q is %v, want %v", key, value, got, want)
			}
		}
		if on(&metav1.ObjectMeta{}) {
			t.Errorf("without %s it is on", key)
		}
	}
}

func TestUnknownAnnotation(t *testing.T) {
	for name, tc := range map[string]struct {
		key, value, want string
	}{
		"another group":              {"example.com/paused", "yes", ""},
		"true":                       {PausedAnnotation, "true", ""},
		"false":                      {DeletionProtectionAnnotation, "false", ""},
		"delete-first, any value":    {DeleteFirstAnnotation, "2026-01-01", ""},
		"a claim":                    {ClaimedNameAnnotation, "web", ""},
		"another value":              {PausedAnnotation, "True", `the value "True" of the annotation samplecontroller.k8s.io/paused counts as "true"`},
		"empty value":                {DeletionProtectionAnnotation, "", `the value "" of the annotation`},
		"unknown key":                {"samplecontroller.k8s.io/deletion-protect", "true", "does not know the annotation samplecontroller.k8s.io/deletion-protect"},
		"a value of 200,000 letters": {PausedAnnotation, strings.Repeat("a", 200_000), `counts as "true"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := UnknownAnnotation(&metav1.ObjectMeta{Annotations: map[string]string{tc.key: tc.value}})
			if !strings.Contains(got, tc.want) || tc.want == "" && got != "" || len(got) > 512 {
				t.Errorf("got %.600q, want %q", got, tc.want)
			}
		})
	}
}
