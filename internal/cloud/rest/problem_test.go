package rest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

// Clouds that do not use RFC 9457 have their reasons in other members.
func TestReasonOfOtherBodiesIsShown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ body, want string }{
		"detail":                            {`{"title":"Bad","detail":"d","message":"m","error":"e"}`, "d"},
		"message":                           {`{"title":"Bad","message":"no such size","error":"Bad Request"}`, "no such size"},
		"error":                             {`{"title":"Bad","error":"no such size"}`, "no such size"},
		"error_description":                 {`{"error":"invalid_request","error_description":"no such size"}`, "no such size"},
		"an object error with message":      {`{"error":{"code":400,"message":"no such size"}}`, "no such size"},
		"an object error with detail":       {`{"error":{"title":"Bad","detail":"no such size"}}`, "no such size"},
		"an object message":                 {`{"message":{"message":"no such size"}}`, "no such size"},
		"a list of errors":                  {`{"errors":[{"title":"Bad","detail":"no such size"},{"detail":"another"}]}`, "no such size"},
		"a list of errors that are texts":   {`{"errors":["no such size","another"]}`, "no such size"},
		"OpenStack":                         {`{"badRequest":{"code":400,"message":"no such size"}}`, "no such size"},
		"OpenStack, quota":                  {`{"forbidden":{"message":"Quota exceeded for cores","code":403}}`, "Quota exceeded for cores"},
		"an empty message":                  {`{"message":"","title":"Bad"}`, "Bad"},
		"a message of spaces":               {`{"message":" \n","title":"Bad"}`, "Bad"},
		"a message that is a number":        {`{"message":7,"title":"Bad"}`, "Bad"},
		"an object among other members":     {`{"request":{"message":"web"},"x":1}`, "the cloud answered 400 Bad Request"},
		"names that differ in case: no":     {`{"Message":"no such size"}`, "the cloud answered 400 Bad Request"},
		"a long one: bounded":               {`{"message":"` + strings.Repeat("x", 1000) + `"}`, strings.Repeat("x", 255) + "…"},
		"a text in several lines: one line": {`{"error":{"message":"no\nsuch\tsize\u202e"}}`, "no such size"},
		"deep nesting: not read":            {strings.Repeat(`{"error":`, 1000) + `"x"` + strings.Repeat(`}`, 1000), "the cloud answered 400 Bad Request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(reply{status: http.StatusBadRequest, body: test.body})).withCapabilities()
			err := verbs["create"](t.Context(), c)
			wantOutcome(t, err, outcome{Kind: cloud.Rejected})
			wantText(t, err, `create server "web": `+test.want)
		})
	}
}

// What such a body calls a code is none of this API, and its secrets are removed.
func TestOtherBodiesAreNoProofAndHoldNoSecrets(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"error":{"code":"notFound","message":"hunter2-hunter2 at 127.0.0.1:80"}}`,
		`{"itemNotFound":{"code":"notFound","message":"hunter2-hunter2 at 127.0.0.1:80"}}`,
	} {
		c := serve(t, answering(reply{status: http.StatusNotFound, body: body}), func(cfg *Config) {
			cfg.Credentials = Credentials{Token: "hunter2-hunter2"}
		}).withCapabilities()
		err := verbs["get"](t.Context(), c)
		wantOutcome(t, err, outcome{Kind: cloud.NotFoundUnproven})
		wantText(t, err, `get server "i-1": the answer 404 without the code notFound (application/json) may not be the cloud's own: `+
			`a complete listing decides (REDACTED at …)`)
	}
}

func TestFaultOfOperationMayBeText(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ fault, want string }{
		"a text":              {`"no host has room"`, "no host has room"},
		"an object, detail":   {`{"detail":"no host has room"}`, "no host has room"},
		"an object, message":  {`{"message":"no host has room"}`, "no host has room"},
		"an object, no texts": {`{"at":7}`, "the cloud gives no reason"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(reply{status: 200, body: `{"id":"o-1","done":true,"error":` + test.fault + `}`})).withCapabilities(allCapabilities()...)
			got, err := c.GetOperation(t.Context(), "o-1")
			if err != nil || got.Err == nil {
				t.Fatalf("%+v, %v; want a fault", got, err)
			}
			if got.Err.Detail != test.want {
				t.Errorf("detail %q, want %q", got.Err.Detail, test.want)
			}
		})
	}
}

func TestStatusThatNoCallHasIsNamed(t *testing.T) {
	t.Parallel()
	const of = "list servers: "
	for name, test := range map[string]struct {
		got  reply
		want string
	}{
		"206": {
			reply{status: 206, body: `[{"id":"i-1"`}, of + "the cloud answered 206 Partial Content: a part of an answer is not used, since what it lacks would look deleted; " +
				"check the proxies and caches in front of the cloud",
		},
		"203": {reply{status: 203, body: `[]`}, of + "the cloud answered 203 Non-Authoritative Information, which is no answer to this call (application/json)"},
		"204": {reply{status: 204}, of + "the cloud answered 204 No Content, which is no answer to this call (empty)"},
		"HTML with 206": {
			reply{status: 206, media: "text/html", body: "<html>"}, of + "an answer that is not the cloud's own: 206 Partial Content, text/html",
		},
		"402":               {reply{status: 402}, of + "the cloud answered 402 Payment Required: it refuses until its provider is paid or grants more"},
		"402 with a reason": {reply{status: 402, body: `{"message":"invoice overdue"}`}, of + "the cloud answered 402 Payment Required: it refuses until its provider is paid or grants more (invoice overdue)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(test.got)).withCapabilities()
			wantText(t, verbs["list"](t.Context(), c), test.want)
		})
	}
}
