package mockcloud

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func TestPageIsOnTheAdminPortAlone(t *testing.T) {
	h := start(t, Options{})
	got := h.sendTo(h.admin, "GET", "/", "")
	if got.status != 200 || got.header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(got.body, "<h1>Mock cloud</h1>") {
		t.Errorf("GET / of the admin port: got %d %s %s", got.status, got.header.Get("Content-Type"), got.body)
	}
	for _, path := range []string{"/", "/page/page.js", "/admin/overview"} {
		got := h.sendTo(h.url, "GET", path, "", "Accept", "text/html")
		if got.status != 404 || got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("GET %s of the REST API's port: got %d %s, want a problem with 404", path, got.status, got.header.Get("Content-Type"))
		}
	}
}

func TestFilesOfThePageAreServedWithAStrictPolicy(t *testing.T) {
	h := start(t, Options{})
	files, err := fs.ReadDir(pageFiles, "page")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]string{"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
	for _, file := range files {
		t.Run(file.Name(), func(t *testing.T) {
			got := h.sendTo(h.admin, "GET", "/page/"+file.Name(), "")
			_, extension, _ := strings.Cut(file.Name(), ".")
			if got.status != 200 || got.header.Get("Content-Type") != types[extension] {
				t.Errorf("got %d %s, want 200 %s", got.status, got.header.Get("Content-Type"), types[extension])
			}
			policy := got.header.Get("Content-Security-Policy")
			if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; ") || strings.Contains(policy, "unsafe") ||
				!strings.Contains(policy, "require-trusted-types-for 'script'") {
				t.Errorf("the policy is %q", policy)
			}
		})
	}
	for _, path := range []string{"/page/none.js", "/page/..%2fpage.go", "/page/"} {
		if got := h.sendTo(h.admin, "GET", path, ""); got.status != 404 {
			t.Errorf("GET %s: got %d, want 404", path, got.status)
		}
	}
}

// The browser would refuse these, or write names of tenants as HTML.
func TestPageHasNoInlineScriptAndWritesNoHTML(t *testing.T) {
	forbidden := map[string]*regexp.Regexp{
		"html": regexp.MustCompile(`(?i)<script>|<style| style=| on[a-z]+=|https?://`),
		"js":   regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|https?://[^w]`),
		"css":  regexp.MustCompile(`@import|url\(`),
	}
	err := fs.WalkDir(pageFiles, "page", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := pageFiles.ReadFile(path)
		_, extension, _ := strings.Cut(path, ".")
		if expr := forbidden[extension]; expr != nil && expr.Match(data) {
			t.Errorf("%s has %q", path, expr.Find(data))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestChangesThatAnotherSiteSendsAreRefused(t *testing.T) {
	h := start(t, Options{})
	const outage = `{"id":"outage","match":{"path":"/**"},"status":503}`
	for name, header := range map[string][]string{
		"another site in a browser": {"Sec-Fetch-Site", "cross-site"},
		"another origin":            {"Origin", "http://evil.example"},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.sendTo(h.admin, "POST", "/faults", outage, header...)
			if got.status != 403 || len(h.cloud.Faults()) != 0 {
				t.Errorf("got %d and the faults %v, want 403 and none", got.status, h.cloud.Faults())
			}
		})
	}
	if got := h.sendTo(h.admin, "POST", "/faults", outage, "Sec-Fetch-Site", "same-origin"); got.status != 201 {
		t.Errorf("the page itself: got %d %s, want 201", got.status, got.body)
	}
}

func TestAdminAPIIsServedAtHostsThatNoWebsiteCanHave(t *testing.T) {
	c := start(t, Options{}).cloud
	for host, want := range map[string]int{
		"127.0.0.1:8081":                        200,
		"[::1]:8081":                            200,
		"192.0.2.7":                             200,
		"localhost:8081":                        200,
		"mock-cloud:8081":                       200,
		"mock-cloud.elsewhere.svc:8081":         200,
		"mock-cloud.a.svc.cluster.local:8081":   200,
		"evil.example:8081":                     403,
		"svc.evil.example":                      403,
		"127.0.0.1.evil.example:8081":           403,
		"mock-cloud.elsewhere.svc.evil.example": 403,
	} {
		t.Run(host, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/faults", nil)
			r.Host = host
			r.Header.Set("Origin", "http://"+host)
			w := httptest.NewRecorder()
			c.newAdminHandler().ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, want)
			}
		})
	}
}
