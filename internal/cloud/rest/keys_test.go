package rest

import (
	"context"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

// keyed are the calls that have an idempotency key.
var keyed = map[string]func(context.Context, *Client) error{
	"server": func(ctx context.Context, c *Client) error {
		_, err := c.CreateServer(ctx, cloud.CreateServer{Name: "web", IdempotencyKey: "k"})
		return err
	},
	"network": func(ctx context.Context, c *Client) error {
		_, err := c.CreateNetwork(ctx, cloud.CreateNetwork{Name: "net", IdempotencyKey: "k"})
		return err
	},
	"snapshot": func(ctx context.Context, c *Client) error {
		_, err := c.CreateSnapshot(ctx, cloud.CreateSnapshot{ServerID: "i-1", Name: "snap", IdempotencyKey: "k"})
		return err
	},
	"revert": func(ctx context.Context, c *Client) error {
		_, err := c.RevertServer(ctx, cloud.RevertServer{ServerID: "i-1", SnapshotID: "s-1", IdempotencyKey: "k"})
		return err
	},
}

// The bodies are in the styles of the Internet-Draft of the header, of payment APIs and of frameworks.
func TestRefusalAboutTheKeyIsInProgressOrReused(t *testing.T) {
	t.Parallel()
	inProgress, reused := outcome{Kind: cloud.Busy, Uncertain: true}, outcome{Kind: cloud.KeyReused}
	for name, test := range map[string]struct {
		status int
		body   string
		want   outcome
	}{
		"draft, in progress":              {409, `{"type":"https://cloud.example.com/idempotency","title":"A request is outstanding for this Idempotency-Key","detail":"A request with the same key is being processed."}`, inProgress},
		"draft, reused":                   {422, `{"type":"https://cloud.example.com/idempotency","title":"Idempotency-Key is already used","detail":"It must not be reused across different payloads."}`, reused},
		"draft, missing":                  {400, `{"type":"https://cloud.example.com/idempotency","title":"Idempotency-Key is missing"}`, outcome{Kind: cloud.Rejected}},
		"the code of our API":             {409, `{"code":"keyInProgress"}`, inProgress},
		"code in capitals":                {409, `{"code":"IDEMPOTENCY_IN_PROGRESS","message":"try again"}`, inProgress},
		"code in flight":                  {409, `{"code":"idempotency_key_in_flight"}`, inProgress},
		"code without a word about keys":  {409, `{"code":"REQUEST_IN_PROGRESS"}`, inProgress},
		"error in an object, in progress": {409, `{"error":{"type":"idempotency_error","code":"idempotency_key_in_use","message":"There is another in-progress request using this key."}}`, inProgress},
		"error in an object, reused":      {400, `{"error":{"type":"idempotency_error","message":"Keys can only be used with the same parameters: this one was first used with different ones."}}`, reused},
		"error is a text":                 {409, `{"error":"another request with this idempotency key is in progress"}`, inProgress},
		"message alone":                   {409, `{"message":"Request with this idempotency key is still being processed"}`, inProgress},
		"mismatch":                        {400, `{"code":"IdempotentParameterMismatch"}`, reused},
		"reused, with 409":                {409, `{"code":"idempotency_conflict","detail":"The same key was sent with a conflicting payload."}`, reused},
		"reused, of our API":              {422, `{"code":"keyReused"}`, reused},
		"used by a request in progress":   {409, `{"title":"The idempotency key is already used by a request in progress"}`, inProgress},
		"too early":                       {425, `{"title":"The request with this Idempotency-Key is in progress"}`, inProgress},
		"locked":                          {423, `{"title":"Idempotency-Key is locked"}`, inProgress},
	} {
		for kind, call := range keyed {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				c := serve(t, answering(reply{status: test.status, media: "application/json", body: test.body})).withCapabilities(allCapabilities()...)
				wantOutcome(t, call(t.Context(), c), test.want)
			})
		}
	}
}

func TestTextAboutTheKeyCounts(t *testing.T) {
	t.Parallel()
	c := serve(t, answering(reply{status: 409, media: "text/plain", body: "a request with this idempotency key is in progress"})).withCapabilities(allCapabilities()...)
	wantOutcome(t, keyed["server"](t.Context(), c), outcome{Kind: cloud.Busy, Uncertain: true})
}

func TestConflictWithoutCodeIsAboutTheNameOnlyWhereNamesAreUnique(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		has  []cloud.Capability
		body string
		want outcome
	}{
		"names are unique":                   {[]cloud.Capability{cloud.Idempotency, cloud.UniqueNames}, `{}`, outcome{Kind: cloud.Taken}},
		"names are not unique":               {[]cloud.Capability{cloud.Idempotency}, `{"title":"Conflict"}`, outcome{Kind: cloud.Busy, Uncertain: true}},
		"names are not unique, with code":    {[]cloud.Capability{cloud.Idempotency}, `{"code":"nameTaken"}`, outcome{Kind: cloud.Taken}},
		"names are not unique, unknown code": {[]cloud.Capability{cloud.Idempotency}, `{"code":"CidrOverlap"}`, outcome{Kind: cloud.Taken}},
		"no keys":                            {nil, `{"title":"A request is outstanding for this Idempotency-Key"}`, outcome{Kind: cloud.Taken}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(reply{status: 409, media: "application/json", body: test.body})).withCapabilities(append(test.has, cloud.Sizing)...)
			wantOutcome(t, keyed["server"](t.Context(), c), test.want)
		})
	}
}
