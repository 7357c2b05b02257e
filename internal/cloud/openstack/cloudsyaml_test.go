package openstack

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFileIsReadAsOtherToolsReadIt(t *testing.T) {
	tests := map[string]struct {
		file, name string
		want       File
	}{
		"of an application credential": {
			file: `
clouds:
  openstack:
    auth:
      auth_url: https://k:5000
      application_credential_id: "a1"
      application_credential_secret: "s1"
    regions:
    - RegionOne
    interface: "public"
    identity_api_version: 3
    auth_type: "v3applicationcredential"
`,
			want: File{
				AuthURL: "https://k:5000", Region: "RegionOne", Interface: InterfacePublic,
				Credentials: Credentials{ApplicationCredentialID: "a1", ApplicationCredentialSecret: "s1"},
			},
		},
		"of a user": {
			file: `
clouds:
  prod:
    auth: {auth_url: "https://k/v3", username: u, password: p, project_id: "p1", project_name: demo, user_domain_name: Default}
    region_name: R
    interface: internal
    volume_api_version: 3
`,
			want: File{
				AuthURL: "https://k/v3", Region: "R", Interface: InterfaceInternal,
				Credentials: Credentials{Username: "u", Password: "p", UserDomain: Identifier{Name: "Default"}, Project: Identifier{ID: "p1", Name: "demo"}},
			},
		},
		"one of several, with one domain for user and project, and older words": {
			file: `
clouds:
  test: {auth: {token: t}}
  prod:
    auth: {username: u, password: p, project_name: demo, domain_id: d1}
    endpoint_type: adminURL
    verify: false
    cacert: /etc/ssl/ca.pem
    compute_endpoint_override: https://c
    image_endpoint_override: https://i
    block_storage_endpoint_override: https://b
`,
			name: "prod",
			want: File{
				Interface: InterfaceAdmin, SkipVerify: true, CAFile: "/etc/ssl/ca.pem", Endpoints: Endpoints{Compute: "https://c", Image: "https://i", BlockStorage: "https://b"},
				Credentials: Credentials{
					Username: "u", Password: "p", UserDomain: Identifier{ID: "d1"}, Project: Identifier{Name: "demo"}, ProjectDomain: Identifier{ID: "d1"},
				},
			},
		},
		"of a token": {
			file: "clouds: {c: {auth_type: v3token, verify: true, auth: {token: t, project_name: demo, default_domain_name: D}}}",
			want: File{Credentials: Credentials{
				Token: "t", Project: Identifier{Name: "demo"}, UserDomain: Identifier{Name: "D"}, ProjectDomain: Identifier{Name: "D"},
			}},
		},
		"with merge keys, before and after a setting": {
			file: `
base: &base {region_name: of-base, interface: admin}
auth: &auth {username: u, password: p, project_name: of-base}
clouds:
  c: {region_name: R, <<: *base, auth: {<<: *auth, project_name: demo}}
`,
			want: File{Region: "R", Interface: InterfaceAdmin, Credentials: Credentials{Username: "u", Password: "p", Project: Identifier{Name: "demo"}}},
		},
		"with the words and places of older files, which come first": {
			file: `
clouds:
  c:
    region-name: R
    project_name: demo
    user-domain-name: staff
    auth: {username: u, password: p, tenant-name: other, project-domain-id: d1}
`,
			want: File{Region: "R", Credentials: Credentials{
				Username: "u", Password: "p", Project: Identifier{Name: "demo"}, UserDomain: Identifier{Name: "staff"}, ProjectDomain: Identifier{ID: "d1"},
			}},
		},
		"with line ends in values": {
			file: "clouds:\r\n  c:\r\n    region_name: |\r\n      R\r\n    auth:\r\n      project_id: |\r\n        p1\r\n      token: t\r\n",
			want: File{Region: "R", Credentials: Credentials{Token: "t", Project: Identifier{ID: "p1"}}},
		},
		"with the region of a list": {
			file: "clouds: {c: {regions: [{name: R, values: {}}], auth: {token: t}}}",
			want: File{Region: "R", Credentials: Credentials{Token: "t"}},
		},
		"with several regions": {
			file: "clouds: {c: {regions: [A, B], auth: {token: t}}}",
			want: File{Credentials: Credentials{Token: "t"}},
		},
		"whose auth_type selects an application credential": {
			file: "clouds: {c: {auth_type: v3applicationcredential, auth: {application_credential_id: a, application_credential_secret: s, username: u, password: p, token: t}}}",
			want: File{Credentials: Credentials{ApplicationCredentialID: "a", ApplicationCredentialSecret: "s", Username: "u"}},
		},
		"whose auth_type selects a password": {
			file: "clouds: {c: {auth_type: password, auth: {application_credential_id: a, application_credential_secret: s, username: u, password: p, project_name: demo, token: t}}}",
			want: File{Credentials: Credentials{Username: "u", Password: "p", Project: Identifier{Name: "demo"}}},
		},
		"whose auth_type selects a token": {
			file: "clouds: {c: {auth_type: token, auth: {application_credential_id: a, username: u, password: p, token: t}}}",
			want: File{Credentials: Credentials{Token: "t"}},
		},
		"of an application credential by name": {
			file: "clouds: {c: {auth: {application_credential_name: op, application_credential_secret: s, user_id: u1}}}",
			want: File{Credentials: Credentials{ApplicationCredentialName: "op", ApplicationCredentialSecret: "s", UserID: "u1"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseFile([]byte(tc.file), tc.name)
			if err != nil {
				t.Fatalf("ParseFile: %v", err)
			}
			// Credentials show nothing, so that a difference of them is compared by itself.
			if got.Credentials != tc.want.Credentials {
				t.Errorf("the credentials differ: %q, want %q", got.Credentials.identity(), tc.want.Credentials.identity())
			}
			got.Credentials, tc.want.Credentials = Credentials{}, Credentials{}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the file (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFileThatCannotBeUsedSaysWhatToDo(t *testing.T) {
	const login = "auth: {username: u, password: " + passphrase + ", project_name: p}"
	for file, says := range map[string]string{
		"":                                        "has no cloud under clouds",
		"clouds: {}":                              "has no cloud under clouds",
		"clouds: [" + login:                       "is not YAML with a map of clouds",
		"clouds:\n\t" + login:                     "is not YAML with a map of clouds: see line 2",
		"clouds: {a: " + passphrase + "}":         "is not YAML with a map of clouds",
		"clouds: {a: {" + login + "}, b: {}}":     "has several clouds: set spec.openstack.cloudName to one of a, b",
		"clouds: {a: {auth: {username: u}}}":      "auth needs one of these",
		"clouds: {a: {}}":                         "auth needs one of these",
		"clouds: {a: }":                           "auth needs one of these",
		"clouds: {a: {auth: " + passphrase + "}}": "auth needs one of these",
		"clouds: {a: {auth: {username: u, password: 123456}}}":             "auth.password is not text: put it in quotes",
		"clouds: {a: {auth: {token: [" + passphrase + "]}}}":               "auth.token has several values",
		"clouds: {a: {" + login + ", auth_type: v3oidcpassword}}":          "this auth_type is not supported",
		"clouds: {a: {" + login + ", auth_type: v2password}}":              "this auth_type is not supported",
		"clouds: {a: {" + login + ", interface: [public]}}":                "interface has several values, where one is needed",
		"clouds: {a: {auth_type: v3applicationcredential, " + login + "}}": "auth needs one of these",
		"clouds: {a: {auth_type: " + passphrase + ", " + login + "}}":      "this auth_type is not supported",
		"clouds: {a: {" + login + ", interface: private}}":                 "interface is none of public, internal and admin",
		"clouds: {a: {" + login + ", cert: c.pem}}":                        "client certificates (cert and key) are not supported",
		"clouds: {a: {auth: {token: t, system_scope: all}}}":               "auth.system_scope is not supported",
		"clouds: {a: {auth: {token: t, trust_id: x}}}":                     "auth.trust_id is not supported",
		"clouds: {a: {auth: {token: t, password: " + passphrase + "}}}":    "auth needs one of these",
	} {
		_, err := ParseFile([]byte(file), "")
		if err == nil || !strings.HasPrefix(err.Error(), "clouds.yaml: "+says) && !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), passphrase) {
			t.Errorf("%s: %v, want %q and no secret", file, err, says)
		}
	}
	_, err := ParseFile([]byte("clouds: {a: {}, b: {}}"), "c")
	if err == nil || err.Error() != `clouds.yaml: has no cloud "c", which spec.openstack.cloudName names, but a, b` {
		t.Errorf("%v, want the names that there are", err)
	}
}

// No error quotes a value of the file, wherever it stands.
func FuzzFile(f *testing.F) {
	f.Add("clouds: {a: {auth: {username: u, password: %, project_name: p}}}")
	f.Add("clouds: {a: {auth: %}}")
	f.Add("clouds: [%")
	f.Add("clouds: &% *%")
	f.Fuzz(func(t *testing.T, file string) {
		_, err := ParseFile([]byte(strings.ReplaceAll(file, "%", passphrase)), "")
		if err != nil && strings.Contains(err.Error(), passphrase) && !strings.Contains(err.Error(), "several clouds") {
			t.Errorf("%v quotes a value of the file", err)
		}
	})
}
