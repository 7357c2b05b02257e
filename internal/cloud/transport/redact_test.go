package transport

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
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

func TestRedactorRemovesEncodedSecrets(t *testing.T) {
	t.Parallel()
	const secret = `s3cr"t/päss?word~4711`
	in64 := base64.StdEncoding.EncodeToString
	r := NewRedactor(secret)
	for name, test := range map[string]struct{ text, want string }{
		"with a scheme":                   {"Authorization: Bearer " + secret, "Authorization: Bearer REDACTED"},
		"percent-encoded in lower case":   {"x=" + strings.ToLower(url.QueryEscape(secret)), "x=REDACTED"},
		"percent-encoded twice":           {"x=" + url.QueryEscape(url.QueryEscape(secret)), "x=REDACTED"},
		"every byte percent-encoded":      {percentAll(secret), "REDACTED"},
		"as a string of JSON":             {jsonString(secret), `"REDACTED"`},
		"as JSON in ASCII":                {`"s3cr\u0022t\/p\u00e4ss?word~4711"`, `"REDACTED"`},
		"base64":                          {"got " + in64([]byte(secret)), "got REDACTED"},
		"base64 without padding":          {"got " + base64.RawStdEncoding.EncodeToString([]byte(secret)), "got REDACTED"},
		"base64 of URLs":                  {"got " + base64.URLEncoding.EncodeToString([]byte(secret)) + ".", "got REDACTED."},
		"base64 of URLs, without padding": {"got " + base64.RawURLEncoding.EncodeToString([]byte(secret)) + ".", "got REDACTED."},
		"base64 behind a path":            {"/servers/x/" + in64([]byte(secret)), "/servers/x/REDACTED"},
		"base64 after words":              {"the cloud got " + in64([]byte(secret)) + " from you", "the cloud got REDACTED from you"},
		"base64 that is percent-encoded":  {url.QueryEscape(in64([]byte(secret))), "REDACTED"},
		"base64 in two lines":             {in64([]byte(secret))[:12] + " " + in64([]byte(secret))[12:], "REDACTED"},
		"escaped for HTML":                {"<b>" + html.EscapeString(secret) + "</b>", "<b>REDACTED</b>"},
		"numbers of HTML":                 {"<b>" + htmlNumbers(secret) + "</b>", "<b>REDACTED</b>"},
		"a literal with escaped bytes":    {`b's3cr"t/p\xc3\xa4ss?word~4711'`, "b'REDACTED'"},
		"hexadecimal":                     {"got " + hex.EncodeToString([]byte(secret)) + ".", "got REDACTED."},
		"hexadecimal after a digit":       {"got 0" + strings.ToUpper(hex.EncodeToString([]byte(secret))), "got 0REDACTED"},
		"hexadecimal with colons":         {"got " + strings.ReplaceAll(fmt.Sprintf("% x", secret), " ", ":"), "got REDACTED"},
		"hexadecimal of base64":           {hex.EncodeToString([]byte(base64.RawStdEncoding.EncodeToString([]byte(secret)))), "REDACTED"},
		"the first 8 characters":          {"token s3cr\"t/p is bad", "token REDACTED is bad"},
		"cut off":                         {"token s3cr\"t/päss…", "token REDACTED…"},
		"fewer characters than half":      {"token s3cr\"", "token s3cr\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Of what base64 pads, the padding may stay.
			padding := strings.NewReplacer(Redacted+"==", Redacted, Redacted+"%3D%3D", Redacted)
			if got := padding.Replace(r.Redact(test.text)); got != test.want {
				t.Errorf("%q became %q, want %q", test.text, got, test.want)
			}
		})
	}
}

func TestRedactorRemovesPasswordFromBasicCredentials(t *testing.T) {
	t.Parallel()
	const password = "correct-horse-battery"
	for _, user := range []string{"", "u", "us", "user", "operator@example.com"} {
		basic := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
		got := NewRedactor(password).Redact("Basic " + basic + " was refused")
		// Three bytes are four characters, so less than a group is left of the password.
		left, _, ok := strings.Cut(strings.TrimPrefix(got, "Basic "), Redacted)
		if !ok || !strings.HasSuffix(strings.TrimLeft(got[strings.Index(got, Redacted)+len(Redacted):], "="), " was refused") {
			t.Errorf("%q became %q", basic, got)
		}
		if raw, _ := base64.RawStdEncoding.DecodeString(left[:len(left)/4*4]); strings.Contains(string(raw), password[:3]) {
			t.Errorf("%q became %q, which shows the beginning of the password", basic, got)
		}
	}
}

func TestRedactorLeavesPartsOfShortSecrets(t *testing.T) {
	t.Parallel()
	if got, want := NewRedactor("passwd").Redact("pass me the passwd"), "pass me the REDACTED"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRedactorRemovesRandomSecretsInEachEncoding holds that neither a secret, nor
// enough of its beginning, is left in any encoding, whatever surrounds it.
func TestRedactorRemovesRandomSecretsInEachEncoding(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(10, 10))
	text := func(alphabet string, n int) string {
		out := make([]rune, n)
		for i := range out {
			out[i] = []rune(alphabet)[random.IntN(utf8.RuneCountInString(alphabet))]
		}
		return string(out)
	}
	encodings := map[string]func(string) string{
		"plain": func(s string) string { return s }, "query": url.QueryEscape, "path": url.PathEscape, "percent": percentAll, "JSON": jsonString,
		"std":    func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"raw":    func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
		"URL":    func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
		"rawURL": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
		"basic":  func(s string) string { return base64.StdEncoding.EncodeToString([]byte("operator:" + s)) },
		"bearer": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("Bearer " + s)) },
		"HTML":   html.EscapeString,
		"hex":    func(s string) string { return hex.EncodeToString([]byte(s)) },
		"nested": func(s string) string {
			return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(jsonString(s))))
		},
	}
	for range 100 {
		secret := text(`abcxyzABCXYZ0189-_.~+/"\<>&%äß€😀`, 8+random.IntN(40))
		before, after := text("abc /=:{", random.IntN(12)), text(" ,}\"", 1+random.IntN(5))
		for name, encode := range encodings {
			whole := before + encode(secret) + after
			got := NewRedactor(secret).Redact(whole)
			if !strings.Contains(got, Redacted) {
				t.Fatalf("%s: %q became %q with the secret %q", name, whole, got, secret)
			}
			for form, again := range encodings {
				if strings.Contains(got, again(secret)) {
					t.Fatalf("%s: %q became %q, which holds %q as %s", name, whole, got, secret, form)
				}
			}
			if strings.Contains(got, secret[:enough(secret)]) {
				t.Fatalf("%s: %q became %q, which holds the beginning of %q", name, whole, got, secret)
			}
		}
		cut := secret[:enough(secret)+random.IntN(len(secret)-enough(secret)+1)]
		if got := NewRedactor(secret).Redact(before + cut + "…"); strings.Contains(got, cut) {
			t.Fatalf("%q is left of %q in %q", cut, secret, got)
		}
	}
}

func TestRedactorBoundsItsWork(t *testing.T) {
	t.Parallel()
	hostile := strings.Repeat("QUFB%25%32%35", MaxErrorBody*4)
	if got := NewRedactor("hunter2-hunter2").Redact(hostile); got != Redacted {
		t.Errorf("%d bytes were kept of a text with too many forms", len(got))
	}
}

func TestRedactorShowsNoSecretWhenPrinted(t *testing.T) {
	t.Parallel()
	r := NewRedactor("hunter2")
	if text := fmt.Sprintf("%v %+v %#v %s %d", r, r, r, r, r); strings.Contains(text, "hunter2") {
		t.Errorf("a secret shows in %q", text)
	}
}

func FuzzRedact(f *testing.F) {
	for _, text := range []string{"", "token hunter2-hunter2", "%68unter2-hunter2", `\u0068unter2-hunter2`, "aHVudGVyMi1odW50ZXIy", `%5Cu0068`, `\ud83d\u`, "%", "\\", "a=b=c", "&#104;unter2-hunter2", "&#x;&amp", "68756e746572322d68756e74657232", `\x68unter2-hunter2`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const secret = "hunter2-hunter2"
		text = Printable(text)
		if got := NewRedactor(secret).Redact(text); strings.Contains(got, secret) || (utf8.ValidString(text) && !utf8.ValidString(got)) {
			t.Errorf("%q became %q", text, got)
		}
	})
}

func percentAll(text string) string {
	var out strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&out, "%%%02x", text[i])
	}
	return out.String()
}

func htmlNumbers(text string) string {
	var out strings.Builder
	for i, r := range text {
		fmt.Fprintf(&out, []string{"&#%d;", "&#x%x;"}[i%2], r)
	}
	return out.String()
}

func jsonString(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}
