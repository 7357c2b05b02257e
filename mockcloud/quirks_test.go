package mockcloud

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseQuirksReadsWhatStringWrites(t *testing.T) {
	for text, want := range map[string]Quirks{
		"":                         {},
		"normalizeNames , noCodes": {NormalizeNames: true, NoCodes: true},
		"normalizeNames=false":     {},
		"seed=7,readLag=5s,replicaLag=1500ms": {
			Seed: 7, ReadLag: Duration(5 * time.Second), ReplicaLag: Duration(1500 * time.Millisecond),
		},
		"contentType,plain404=html,ignorePatch": {ContentType: "text/json", Plain404: "html", IgnorePatch: PatchUnchanged},
		"capabilities=501,listCap=3,stuckBuilding=slow-*,hugeListing=10,gzipBomb=4000000000": {
			Capabilities: "501", ListCap: 3, StuckBuilding: "slow-*", HugeListing: 10, GzipBomb: 4e9,
		},
		"numericIDs,extraFields,wrongTypes,wrongLabels,lowerCaseStates,longHost,replayResets,retryAfterDate=10m,existingOnCreate": {
			NumericIDs: true, ExtraFields: true, WrongTypes: true, WrongLabels: true, LowerCaseStates: true,
			LongHost: true, ReplayResets: true, RetryAfterDate: Duration(10 * time.Minute), ExistingOnCreate: true,
		},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := ParseQuirks(text)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Fatalf("quirks (-want +got), %v:\n%s", err, diff)
			}
			again, err := ParseQuirks(got.String())
			if diff := cmp.Diff(want, again); diff != "" || err != nil {
				t.Errorf("quirks of %q (-want +got), %v:\n%s", got, err, diff)
			}
		})
	}
}

func TestEveryQuirkHasAField(t *testing.T) {
	fields := map[string]any{}
	if err := json.Unmarshal(encoded("", "", everyQuirk).Value, &fields); err != nil {
		t.Fatal(err)
	}
	for _, k := range quirkKinds {
		if _, on := k.value(everyQuirk); !on {
			t.Errorf("%s is not on", k.name)
		}
		if fields[k.name] == nil {
			t.Errorf("JSON has no %s", k.name)
		}
		delete(fields, k.name)
	}
	if len(fields) > 0 {
		t.Errorf("--quirks does not have %v", fields)
	}
}

func TestEveryQuirkIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/mock-cloud.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range quirkKinds {
		if !regexp.MustCompile(`(?m)^\| ` + "`" + k.name + "[`=]").Match(page) {
			t.Errorf("docs/mock-cloud.md does not have %s", k.name)
		}
		for _, choice := range k.choices {
			if !strings.Contains(string(page), choice) {
				t.Errorf("docs/mock-cloud.md does not have %s=%s", k.name, choice)
			}
		}
	}
}

// everyQuirk has all quirks on.
var everyQuirk = Quirks{
	Seed: 1, ReadLag: 1, ReplicaLag: 1, NormalizeNames: true, DomainNames: true, CutNames: 1, DecomposedNames: true, CutLabels: 1, DropLabels: true, KeysInProgress: true, NumericIDs: true, ReusesIDs: true, ExtraFields: true, WrongTypes: true,
	WrongLabels: true, LowerCaseStates: true, ContentType: "none", Plain404: "empty", NoCodes: true,
	Capabilities: "500", ListCap: 1, LongHost: true, ReplayResets: true, IgnorePatch: PatchEcho, StuckBuilding: "x",
	RetryAfterDate: 1, HugeListing: 1, GzipBomb: 1, ExistingOnCreate: true,
}

func TestInvalidQuirksAreRejected(t *testing.T) {
	for text, want := range map[string]string{
		"readlag=5s":           `unknown quirk "readlag": the quirks are seed, readLag, replicaLag,`,
		"normalizeNames=maybe": "quirk normalizeNames",
		"readLag":              "quirk readLag",
		"readLag=":             "quirk readLag: the value is missing",
		"readLag=-1s":          "must not be negative",
		"listCap=-1":           "must not be negative",
		"listCap=many":         "quirk listCap",
		"contentType=text/xml": `quirk contentType: "text/xml" is not one of text/json, application/octet-stream, none`,
		"capabilities=404":     `quirk capabilities: "404" is not one of 400`,
		"stuckBuilding":        "quirk stuckBuilding: the value is missing",
		"seed=x":               "quirk seed",
	} {
		t.Run(text, func(t *testing.T) {
			if _, err := ParseQuirks(text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error with %s", err, want)
			}
		})
	}
	if cloud, err := New(Options{Quirks: Quirks{Plain404: "pdf"}}); err == nil {
		_ = cloud.Close()
		t.Error("options with an invalid quirk are accepted")
	}
}

func TestQuirksCanBeChangedWhileRunning(t *testing.T) {
	h := start(t, Options{Quirks: Quirks{NoCodes: true}})
	h.call(200, "PATCH", "/admin/quirks", `{"plain404":"json","readLag":"5s"}`)
	got := decodeInto[Quirks](t, h.call(200, "PATCH", "/admin/quirks", `{"noCodes":false}`).body)
	want := Quirks{Plain404: "json", ReadLag: Duration(5 * time.Second)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("quirks (-want +got):\n%s", diff)
	}
	unknown := h.call(400, "PATCH", "/admin/quirks", `{"nocodes":true}`).body
	if !strings.Contains(unknown, `unknown quirk \"nocodes\": the quirks are seed,`) {
		t.Errorf("got %s, want the names of the quirks", unknown)
	}
	h.call(400, "PATCH", "/admin/quirks", `{"readLag":5}`)
	h.call(400, "PATCH", "/admin/quirks", `{"contentType":"text/xml"}`)
	if diff := cmp.Diff(want, decodeInto[Quirks](t, h.call(200, "GET", "/admin/quirks", "").body)); diff != "" {
		t.Errorf("quirks after refused changes (-want +got):\n%s", diff)
	}
	h.call(204, "DELETE", "/admin/quirks", "")
	if got := h.cloud.Quirks(); got != (Quirks{}) {
		t.Errorf("got the quirks %s, want none", got)
	}
	h.call(404, "PATCH", "/admin/nothing", "{}")
}

func TestAPIHandlerDoesNotServeTheAdminAPI(t *testing.T) {
	h := start(t, Options{Token: "secret"})
	for _, r := range append(h.cloud.adminRoutes(), route{method: "GET", template: "/metrics"}) {
		path := strings.NewReplacer("{id}", "x", "{name}", "x").Replace(r.template)
		got := h.sendTo(h.url, r.method, path, "{}", "Authorization", "Bearer secret")
		if got.status != 404 || codeIn(t, got) != CodeNotFound {
			t.Errorf("%s %s: got %d %s, want 404", r.method, path, got.status, got.body)
		}
	}
	if got := h.sendTo(h.url, "GET", "/ledger", ""); got.status != 401 {
		t.Errorf("the ledger without the token: got %d, want 401", got.status)
	}
	if got := h.sendTo(h.url, "GET", "/ledger", "", "Authorization", "Bearer secret"); got.status != 200 {
		t.Errorf("the ledger with the token: got %d, want 200", got.status)
	}
	if got := h.sendTo(h.admin, "GET", "/servers", ""); got.status != 404 {
		t.Errorf("the REST API at the admin handler: got %d, want 404", got.status)
	}
}
