package transport

import (
	"fmt"
	"strings"
	"testing"
)

func TestRedactorRemovesSecrets(t *testing.T) {
	t.Parallel()
	r := NewRedactor("a b/c", "")
	for name, test := range map[string]struct{ text, want string }{
		"plain":                {"got a b/c twice: a b/c", "got REDACTED twice: REDACTED"},
		"escaped in a query":   {"x=a+b%2Fc", "x=REDACTED"},
		"escaped in a path":    {"/a%20b%2Fc", "/REDACTED"},
		"the secret of a call": {"session", "REDACTED"},
		"no secret":            {"nothing to hide", "nothing to hide"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := r.Redact(test.text, "session"); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestRedactorShowsNoSecretWhenPrinted(t *testing.T) {
	t.Parallel()
	r := NewRedactor("hunter2")
	if text := fmt.Sprintf("%v %+v %#v %s %d", r, r, r, r, r); strings.Contains(text, "hunter2") {
		t.Errorf("a secret shows in %q", text)
	}
}
