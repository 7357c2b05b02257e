package rest

import (
	"bytes"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/privatecloud/operator/internal/cloud"
)

// servingBytes answers every call with body as it is.
func servingBytes(body []byte, header map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for key, value := range header {
			w.Header().Set(key, value)
		}
		_, _ = w.Write(body)
	})
}

// serverInUTF16 returns a server in UTF-16, after a byte order mark if there is one.
func serverInUTF16(big, mark bool) []byte {
	text := `{"id":"i-1","name":"web"}`
	if mark {
		text = "\uFEFF" + text
	}
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		if big {
			b = append(b, byte(unit>>8), byte(unit))
		} else {
			b = append(b, byte(unit), byte(unit>>8))
		}
	}
	return b
}

func deflated(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	return b.Bytes()
}

func TestBodyThatIsNotJSONIsNamed(t *testing.T) {
	t.Parallel()
	const server, token = `{"id":"i-1","name":"web"}`, "hunter2-hunter2"
	const gzip = "the answer is compressed with gzip, or twice, and its headers do not say so"
	const deflate = "the answer is compressed with deflate, which the operator does not read"
	long := `{"id":"i-1","name":"web","x":` + strings.Repeat(" ", 5000)
	for name, test := range map[string]struct {
		body   []byte
		header map[string]string
		want   string
	}{
		"gzip without a header": {gzipped(t, server), nil, gzip},
		"gzip of octets":        {gzipped(t, server), map[string]string{"Content-Type": "application/octet-stream"}, gzip},
		"gzip twice":            {gzipped(t, string(gzipped(t, server))), map[string]string{"Content-Encoding": "gzip"}, gzip},
		"no gzip, though a header says so": {
			[]byte(server), map[string]string{"Content-Encoding": "gzip"}, "the answer is not valid gzip, though its header Content-Encoding says that it is",
		},
		"deflate":                  {deflated(t, server), map[string]string{"Content-Encoding": "deflate"}, deflate},
		"deflate without a header": {deflated(t, server), nil, deflate},
		"another encoding": {
			[]byte("\x0b\x02\x80abc"), map[string]string{"Content-Encoding": "br"},
			`the answer has the content encoding "br", which was not asked for: have the cloud send it as it is, or with gzip`,
		},
		"UTF-16 with a mark, little": {serverInUTF16(false, true), nil, "the answer is in UTF-16 or UTF-32, not in UTF-8"},
		"UTF-16 with a mark, big":    {serverInUTF16(true, true), nil, "the answer is in UTF-16, not in UTF-8"},
		"UTF-16, little":             {serverInUTF16(false, false), nil, "the answer is in UTF-16 or UTF-32, not in UTF-8"},
		"UTF-16, big":                {serverInUTF16(true, false), nil, "the answer is in UTF-16, not in UTF-8"},
		"NaN":                        {[]byte(`{"id":"i-1","name":"web","cpu":NaN}`), nil, `the answer is not valid JSON: at byte 32, near "NaN}"`},
		"Infinity":                   {[]byte(`{"id":"i-1","name":"web","cpu":Infinity}`), nil, `the answer is not valid JSON: at byte 32, near "Infinity}"`},
		"-Infinity":                  {[]byte(`{"id":"i-1","name":"web","cpu":-Infinity}`), nil, `the answer is not valid JSON: at byte 33, near "-Infinity}"`},
		"apostrophes":                {[]byte(`{'id':'i-1','name':'web'}`), nil, `the answer is not valid JSON: at byte 2, near "'id':'i-1','name':'web'}"`},
		"no comma":                   {[]byte(`{"id":"i-1" "name":"web"}`), nil, `the answer is not valid JSON: at byte 13, near "\"name\":\"web\"}"`},
		"text": {
			[]byte("default backend - 404 of the ingress of this cluster"), map[string]string{"Content-Type": "text/plain"},
			`the answer is not JSON but text/plain, beginning with "default backend - 404 of the ingress of…"`,
		},
		"text of another type": {[]byte("OK"), nil, `the answer is not valid JSON: at byte 1, near "OK"`},
		"empty":                {nil, nil, "the answer is empty"},
		"cut short":            {[]byte(server[:10]), nil, "the answer is not valid JSON: it ends too early"},
		"far behind":           {[]byte(long + `NaN}`), nil, `the answer is not valid JSON: at byte 5030, near "NaN}"`},
		"a mark before it":     {[]byte("\uFEFF" + `{"id":NaN}`), nil, `the answer is not valid JSON: at byte 10, near "NaN}"`},
		"control characters":   {[]byte("{\"id\":\x1b\u202eNaN}"), nil, `the answer is not valid JSON: at byte 7, near "NaN}"`},
		"a secret":             {[]byte(`{"id":` + token + `}`), nil, `the answer is not valid JSON: at byte 7, near "REDACTED}"`},
	} {
		for _, verb := range []string{"get", "list"} {
			t.Run(name+", "+verb, func(t *testing.T) {
				t.Parallel()
				body, want := test.body, test.want
				c := serve(t, servingBytes(body, test.header), func(cfg *Config) { cfg.Credentials = Credentials{Token: token} }).withCapabilities()
				err := verbs[verb](t.Context(), c)
				wantOutcome(t, err, outcome{Kind: cloud.Unreadable})
				if _, got, _ := strings.Cut(err.Error(), ": "); got != want {
					t.Errorf("%q, want %q", got, want)
				}
				if public := cloud.PublicMessage(err); !strings.HasSuffix(public, ": the answer of the cloud cannot be understood") {
					t.Errorf("tenants read %q", public)
				}
			})
		}
	}
}

func TestSecretIsNotQuotedFromItsMiddle(t *testing.T) {
	t.Parallel()
	const token = "1234-hunter2-hunter2"
	for _, body := range []string{`{"id":` + token + `}`, `[` + token + `]`, `{"id":` + strings.Repeat("1", 500) + token + `}`, token} {
		for _, verb := range []string{"get", "list"} {
			c := serve(t, servingBytes([]byte(body), nil), func(cfg *Config) { cfg.Credentials = Credentials{Token: token} }).withCapabilities()
			if err := verbs[verb](t.Context(), c); err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s of %s: %v", verb, body, err)
			}
		}
	}
}

// The answer to a login has a token that nothing knows yet.
func TestAnswerToLoginIsNotQuoted(t *testing.T) {
	t.Parallel()
	for _, media := range []string{"application/json", "text/plain"} {
		for _, body := range []string{`{"token":new-secret}`, `new-secret`, `{"token":"new-secret"`} {
			c := serve(t, servingBytes([]byte(body), map[string]string{"Content-Type": media}), func(cfg *Config) {
				cfg.Credentials = Credentials{Username: "u", Password: "p"}
			}).withCapabilities()
			if err := verbs["get"](t.Context(), c); err == nil || strings.Contains(err.Error(), "new-secret") {
				t.Errorf("%s: %v, want an error without the token", body, err)
			}
		}
	}
}
