package openstack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
)

func catalogOf(t *testing.T, entries []any) []tokens.CatalogEntry {
	t.Helper()
	data, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	var catalog []tokens.CatalogEntry
	if err := json.Unmarshal(data, &catalog); err != nil {
		t.Fatal(err)
	}
	return catalog
}

func TestEndpointIsThatOfVersion3(t *testing.T) {
	for text, want := range map[string]string{
		"https://K.example.com:5000":        "https://k.example.com:5000/v3",
		"https://k.example.com:5000/v3/":    "https://k.example.com:5000/v3",
		"https://k.example.com/identity":    "https://k.example.com/identity/v3",
		"https://k.example.com/identity/v3": "https://k.example.com/identity/v3",
	} {
		got, err := parseEndpoint(text)
		if err != nil || got.String() != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"":                           "is not a URL",
		"ftp://k":                    "must begin with https:// or http://",
		"https://":                   "names no host",
		"https://u:secret@k/v3":      "holds credentials",
		"https://k/v3?a=b":           "leave out what follows",
		"https://k/../v3":            ". or .. segments",
		"https://k.example.com/v2.0": "version 2.0 of the identity service is not supported",
	} {
		_, err := parseEndpoint(text)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

func TestCredentialsAreOfOneKind(t *testing.T) {
	tests := map[string]struct {
		credentials Credentials
		says        string
	}{
		"application credential":               {credentials: Credentials{ApplicationCredentialID: "i\n", ApplicationCredentialSecret: "s\n"}},
		"username and password":                {credentials: Credentials{Username: "u", Password: "p"}},
		"none":                                 {says: "it holds neither"},
		"both":                                 {credentials: Credentials{ApplicationCredentialID: "i", ApplicationCredentialSecret: "s", Username: "u", Password: "p"}, says: "it holds both"},
		"application credential in part":       {credentials: Credentials{ApplicationCredentialID: "i"}, says: "applicationCredentialId and applicationCredentialSecret go together"},
		"application credential by name":       {credentials: Credentials{ApplicationCredentialName: "n", ApplicationCredentialSecret: "s", UserID: "u"}},
		"application credential by name alone": {credentials: Credentials{ApplicationCredentialName: "n", ApplicationCredentialSecret: "s"}, says: "needs the user that it belongs to"},
		"application credential beside a user": {credentials: Credentials{ApplicationCredentialID: "i", ApplicationCredentialSecret: "s", Username: "u"}},
		"user id and password":                 {credentials: Credentials{UserID: "u", Password: "p"}},
		"password without a user":              {credentials: Credentials{Password: "p"}, says: "username and password go together"},
		"token":                                {credentials: Credentials{Token: "t\n"}},
		"token and password":                   {credentials: Credentials{Token: "t", Username: "u", Password: "p"}, says: "it holds a token and other credentials"},
		"token and application credential":     {credentials: Credentials{Token: "t", ApplicationCredentialID: "i", ApplicationCredentialSecret: "s"}, says: "it holds a token and other credentials"},
		"username without a password":          {credentials: Credentials{Username: "u"}, says: "username and password go together"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := tc.credentials.Validate()
			if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("%v, want %q", err, tc.says)
			}
		})
	}
}

func TestPasswordNeedsAProject(t *testing.T) {
	_, err := New(Config{Endpoint: "https://k/v3", Credentials: Credentials{Username: "u", Password: "p"}})
	if err == nil || !strings.Contains(err.Error(), "openstack.project: is empty") {
		t.Errorf("%v, want that the project is missing", err)
	}
}

func TestCredentialsAreNeverPrinted(t *testing.T) {
	c := Credentials{ApplicationCredentialID: "visible-id", ApplicationCredentialSecret: passphrase, Password: passphrase}
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{c.String(), fmt.Sprintf("%+v %#v %d %s", c, c, c, c), string(encoded), fmt.Sprint(Config{Credentials: c}), fmt.Sprint(c.MarshalLog())} {
		if strings.Contains(text, passphrase) {
			t.Errorf("%s contains the secret", text)
		}
	}
}
