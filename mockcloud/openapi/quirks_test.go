package openapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/privatecloud/operator/mockcloud"
)

// Quirks by which answers differ from the document are marked, and the marked
// answers are not checked. The answers of a cloud with other quirks still are.
func TestQuirksAreNoViolations(t *testing.T) {
	for text, marked := range map[string]bool{
		"readLag=1h": false, "replicaLag=1h": false, "normalizeNames": false, "domainNames": false, "cutNames=2": false, "decomposedNames": false, "cutLabels=2": false, "dropLabels": false, "keysInProgress": false, "listCap=1": false, "replayResets": false,
		"ignorePatch": false, "ignorePatch=echo": false, "stuckBuilding=*": false, "retryAfterDate=1h": false,
		"numericIDs": true, "reusesIDs": true, "extraFields": true, "wrongTypes": true, "wrongLabels": true, "lowerCaseStates": true,
		"contentType=text/json": true, "contentType=application/octet-stream": true, "contentType=none": true,
		"plain404=empty": true, "plain404=json": true, "plain404=html": true, "plain404=text": true, "noCodes": true,
		"capabilities=401": true, "capabilities=html": true, "capabilities=empty": true, "longHost": true,
		"hugeListing=5000": true, "gzipBomb=1000000": true, "existingOnCreate": true,
	} {
		t.Run(text, func(t *testing.T) {
			quirks, err := mockcloud.ParseQuirks(text)
			if err != nil {
				t.Fatal(err)
			}
			for _, profile := range []mockcloud.Profile{mockcloud.Core, mockcloud.Extended} {
				// Violations fail the test.
				cloud, api := start(t, mockcloud.Options{Profile: profile, SeedServers: 3, Quirks: quirks})
				api.visit("POST", "/servers", `{"name":"Web"}`, marked)
				api.visit("POST", "/servers", `{"name":"Web"}`, marked)
				for _, s := range cloud.Servers() {
					for _, path := range []string{"/servers/" + s.ID, "/servers/" + s.ID + "/status"} {
						api.visit("GET", path, "", marked)
					}
					if profile == mockcloud.Extended {
						api.visit("PATCH", "/servers/"+s.ID, `{"cpu":4,"labels":{"a":"b"}}`, marked)
					}
				}
				for _, path := range []string{"/servers", "/servers/none", "/capabilities", "/networks", "/hosts", "/check/web"} {
					api.visit("GET", path, "", marked)
				}
				api.visit("DELETE", "/servers/"+cloud.Servers()[0].ID, "", marked)
			}
		})
	}
}

// visit makes a call, whose answer may have any status, and checks whether the answer
// is marked.
func (a *api) visit(method, path, body string, marked bool) {
	a.t.Helper()
	r, err := http.NewRequest(method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if body == "" {
		r.Body = nil
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := a.client.Do(r)
	if err != nil {
		// The quirk may reset connections.
		return
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		a.t.Errorf("%s %s: %v", method, path, err)
	}
	if got := answer.Header.Get(mockcloud.QuirksHeader) != ""; got != marked {
		a.t.Errorf("%s %s: the answer is marked: %t, want %t", method, path, got, marked)
	}
}
