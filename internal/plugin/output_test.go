package plugin_test

import (
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/plugin"
)

func TestTableIsPlainText(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := plugin.Table(&out, []string{"NAME", "STATE"}, []string{"web\x1b[2J\u202e\n", "веб\tON"}); err != nil {
		t.Fatal(err)
	}
	const want = "NAME        STATE\nweb\ufffd[2J\ufffd    веб ON\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
