package rest

import (
	"errors"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

// TestIDInAnotherFormIsNamed asks for a server and a network by one form of an id, and the cloud answers with another.
func TestIDInAnotherFormIsNamed(t *testing.T) {
	t.Parallel()
	const token, id = "hunter2-hunter2", "5021d5b7-0a1b-4c2d-8e3f-0123456789ab"
	for name, tc := range map[string]struct {
		asked, answered, want string
	}{
		"upper case":                  {id, `"` + strings.ToUpper(id) + `"`, `"5021D5B7-0A1B-4C2D-8E3F-0123456789AB", not "` + id + `": ` + cloud.FormOfIDs},
		"a number with leading zeros": {"06", `6`, `"6", not "06": ` + cloud.FormOfIDs},
		"a URL":                       {"6", `"https://cloud.test/servers/6"`, `"https://cloud.test/servers/6", not "6": ` + cloud.FormOfIDs},
		"a URL with the token":        {"6", `"/` + token + `/6"`, `"/REDACTED/6", not "6": ` + cloud.FormOfIDs},
		"another id":                  {"6", `7`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(reply{status: 200, body: `{"id":` + tc.answered + `,"name":"web"}`}), func(cfg *Config) {
				cfg.Credentials = Credentials{Token: token}
			}).withCapabilities(allCapabilities()...)
			_, server := c.GetServer(t.Context(), tc.asked)
			_, network := c.GetNetwork(t.Context(), tc.asked)
			for noun, err := range map[string]error{"server": server, "network": network} {
				want := "the answer is about another " + noun
				if tc.want != "" {
					want = "the answer is about " + noun + " " + tc.want
				}
				if e, ok := errors.AsType[*cloud.Error](err); !ok || e.Kind != cloud.Unreadable || e.Detail != want {
					t.Errorf("%v, want Unreadable and %q", err, want)
				}
			}
		})
	}
}
