package console_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/console"
)

func TestOnlyTheKeyOfTheRequestOpens(t *testing.T) {
	const text = "login: root password: secret-of-the-guest\n"
	key, err := console.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	other, err := console.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := console.Seal(key.Public(), "uid-1", text)
	if err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil || bytes.Contains(data, []byte("secret")) {
		t.Errorf("the text can be read, or is not in base64: %v", err)
	}
	if got, openErr := key.Open("uid-1", sealed); openErr != nil || got != text {
		t.Errorf("got %q, %v; want the text", got, openErr)
	}
	encode := base64.StdEncoding.EncodeToString
	for name, open := range map[string]func() (string, error){
		"another key":     func() (string, error) { return other.Open("uid-1", sealed) },
		"another request": func() (string, error) { return key.Open("uid-2", sealed) },
		"changed": func() (string, error) {
			return key.Open("uid-1", encode(append(bytes.Clone(data[:len(data)-1]), data[len(data)-1]^1)))
		},
		"cut":        func() (string, error) { return key.Open("uid-1", encode(data[:40])) },
		"not base64": func() (string, error) { return key.Open("uid-1", "?"+sealed) },
		"nothing":    func() (string, error) { return key.Open("uid-1", "") },
	} {
		if got, openErr := open(); openErr == nil {
			t.Errorf("%s: got %q, want an error", name, got)
		}
	}
}

func TestTextsThatAreNoKeysAreRefused(t *testing.T) {
	key, err := console.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	public := key.Public()
	if len(public) != 88 || console.Check(public) != nil {
		t.Errorf("the public key has %d characters, not the 88 of the API: %v", len(public), console.Check(public))
	}
	encode := base64.StdEncoding.EncodeToString
	for name, public := range map[string]string{
		"empty": "", "cut": public[:87], "not base64": strings.Repeat("?", 88), "64 bytes": encode(make([]byte, 64)), "zeros": encode(make([]byte, 65)),
		"not on the curve": encode(append([]byte{4}, bytes.Repeat([]byte{7}, 64)...)),
	} {
		if console.Check(public) == nil {
			t.Errorf("%s: Check accepts it", name)
		}
		if _, sealErr := console.Seal(public, "uid", strings.Repeat("x", 9)); sealErr == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
