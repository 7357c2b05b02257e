package cloudinit

import (
	"bytes"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var keys = []string{"ssh-ed25519 AAAA ann@example.com", `ssh-rsa BBBB "quoted" # and: more`, "ssh-rsa CCCC \u0080\u0085\ufeff\uffff \u2028 ü 😀"}

const (
	script  = "#!/bin/sh\necho grüße\r\n"
	merging = "list(append)+dict(no_replace,recurse_list)+str()"
)

func TestComposeOfOneThingAddsNothing(t *testing.T) {
	if got := Compose[string]([]byte(script), nil); string(got) != script {
		t.Errorf("user data alone: %q, want it as it is", got)
	}
	got := Compose(nil, keys)
	if !bytes.HasPrefix(got, []byte("#cloud-config\n")) {
		t.Errorf("keys alone: %q, want a cloud-config", got)
	}
	wantKeys(t, got, "")
}

// part is a part of a message as cloud-init walks it: nested messages are flat.
type part struct{ kind, body string }

func TestComposeOfBothKeepsUserDataAndAddsKeys(t *testing.T) {
	packed := "\x1f\x8b" + string([]byte{8, 0, 255, 10})
	message := "Content-Type: multipart/mixed; boundary=\"own\"\nMIME-Version: 1.0\n\n--own\nContent-Type: text/x-shellscript\n\necho one\n--own\nContent-Type: text/cloud-config\n\nlocale: C\n--own--\n"
	for name, test := range map[string]struct {
		data string
		want []part
	}{
		"a script: its format is found out by its beginning": {script, []part{{"text/plain", script}}},
		"a cloud-config without a line break at its end":     {"#cloud-config\nlocale: C", []part{{"text/plain", "#cloud-config\nlocale: C"}}},
		"compressed: it says so":                             {packed, []part{{"application/gzip", packed}}},
		"a message: its parts are kept":                      {message, []part{{"text/x-shellscript", "echo one"}, {"text/cloud-config", "locale: C"}}},
		"a message after empty lines":                        {"\n\n" + message, []part{{"text/x-shellscript", "echo one"}, {"text/cloud-config", "locale: C"}}},
	} {
		t.Run(name, func(t *testing.T) {
			composed := Compose([]byte(test.data), keys)
			if !bytes.Equal(composed, Compose([]byte(test.data), keys)) {
				t.Error("the same arguments yield other bytes")
			}
			m, err := mail.ReadMessage(bytes.NewReader(composed))
			if err != nil {
				t.Fatalf("ReadMessage: %v", err)
			}
			got := walk(t, m.Header.Get("Content-Type"), "", m.Body)
			if len(got) == 0 {
				t.Fatal("there are no parts")
			}
			own := got[len(got)-1]
			if diff := cmp.Diff(test.want, got[:len(got)-1], cmp.AllowUnexported(part{})); diff != "" {
				t.Errorf("parts of the user data (-want +got):\n%s", diff)
			}
			if own.kind != "text/cloud-config" {
				t.Errorf("the keys are in a part of type %s", own.kind)
			}
			wantKeys(t, []byte(own.body), merging)
		})
	}
}

// walk returns the parts of a message that are no messages themselves.
func walk(t *testing.T, contentType, encoding string, body io.Reader) []part {
	t.Helper()
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Fatalf("content type %q: %v", contentType, err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		if encoding == "base64" {
			body = base64.NewDecoder(base64.StdEncoding, body)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatalf("body of %s: %v", kind, err)
		}
		return []part{{kind, string(text)}}
	}
	var all []part
	for parts := multipart.NewReader(body, params["boundary"]); ; {
		p, err := parts.NextRawPart()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("part: %v", err)
		}
		all = append(all, walk(t, p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), p)...)
	}
}

func wantKeys(t *testing.T, config []byte, mergeHow string) {
	t.Helper()
	var got struct {
		Keys     []string `json:"ssh_authorized_keys"`
		MergeHow string   `json:"merge_how"`
	}
	if err := yaml.UnmarshalStrict(config, &got); err != nil {
		t.Fatalf("%q: %v", config, err)
	}
	if diff := cmp.Diff(keys, got.Keys); diff != "" || got.MergeHow != mergeHow {
		t.Errorf("keys (-want +got):\n%s\nmerge_how %q, want %q", diff, got.MergeHow, mergeHow)
	}
}

func TestWithoutQuotesRemovesPartsOfUserData(t *testing.T) {
	data := []byte("#cloud-config\npassword: hunter2-hunter2\n")
	for name, test := range map[string]struct{ text, want string }{
		"nothing of it: as it was":            {"the template debian is unknown", "the template debian is unknown"},
		"a line of it":                        {"line 2: password: hunter2-hunter2, unexpected", "line 2: …, unexpected"},
		"the end of a secret":                 {"near er2-hunter2.", "near …."},
		"its base64":                          {"got I2Nsb3VkLWNvbmZpZwpwYXNz!", "got …!"},
		"two parts":                           {"#cloud-config and hunter2-", "… and…"},
		"less than 8 bytes: not recognizable": {"near (hunter2)", "near (hunter2)"},
		"characters of several bytes beside":  {"„hunter2-hunter2“", "„…“"},
		"empty":                               {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WithoutQuotes(test.text, data); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if got := WithoutQuotes(test.text, Compose(data, keys), data); got != test.want {
				t.Errorf("sent with keys: %q, want %q", got, test.want)
			}
		})
	}
}

// BenchmarkWithoutQuotes shows that user data that repeats itself, and is quoted, takes no longer than other data.
func BenchmarkWithoutQuotes(b *testing.B) {
	const size = 1 << 20
	random := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	for name, data := range map[string][]byte{"repeats itself": bytes.Repeat([]byte("a"), size), "random": random} {
		b.Run(name, func(b *testing.B) {
			text := "there is no template " + string(data[:256])
			for b.Loop() {
				WithoutQuotes(text, data, data)
			}
		})
	}
}
