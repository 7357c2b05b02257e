package rest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
)

var hard = []string{
	"web-1", ".", "..", "...", "a/b", "../../servers", "%2f", "%2e%2e", "a?b", "a#b", "a b", "+", "&;=:@", "\\", "\x00", "\n",
	"сервер", "服务器", "خادم", "🖥", "\xff", "{name}",
}

// The test uses a connection, since it checks what the cloud receives.
func TestAnyNameIsOnePathSegment(t *testing.T) {
	t.Parallel()
	var path string
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.EscapedPath()
		w.WriteHeader(http.StatusOK)
	}))
	c.exchange.endpoint += "/base%2Fpath"
	for _, name := range hard {
		if !utf8.ValidString(name) {
			continue
		}
		if err := c.CheckName(t.Context(), cloud.Name{Name: name}); err != nil {
			t.Errorf("CheckName(%q): %v", name, err)
			continue
		}
		if segment, ok := strings.CutPrefix(path, "/base%2Fpath/check/"); !ok || !arrives(segment, name) {
			t.Errorf("CheckName(%q) arrived as %s", name, path)
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, name := range hard {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if segment := escape(name); !arrives(segment, name) {
			t.Errorf("escape(%q) = %q", name, segment)
		}
		u, err := url.Parse("https://cloud.example/check/" + escape(name))
		if err != nil {
			t.Fatalf("url.Parse: %v", err)
		}
		if got := u.EscapedPath(); got != "/check/"+escape(name) || u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("escape(%q) became %q", name, u)
		}
	})
}

func arrives(segment, name string) bool {
	decoded, err := url.PathUnescape(segment)
	return err == nil && decoded == name && segment != "." && segment != ".." && !strings.ContainsAny(segment, "/?#\\ ")
}
