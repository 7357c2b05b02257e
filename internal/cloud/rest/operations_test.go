package rest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestAcceptedChangeHasOperation(t *testing.T) {
	t.Parallel()
	location := func(value string) map[string]string { return map[string]string{"Location": value} }
	building := cloud.Server{ID: "i-1", Name: "web", State: cloud.StateBuilding}
	for name, test := range map[string]struct {
		reply reply
		caps  []cloud.Capability
		want  cloud.Result
		kind  cloud.Kind
	}{
		"a reference in the header and no body: the operation": {
			reply: reply{status: 202, header: location("/operations/op-1")}, want: cloud.Result{Operation: "op-1"},
		},
		"a reference with a host, a path and an escaped id: the operation": {
			reply: reply{status: 202, header: location("https://cloud.test/v1/operations/op%2F1?x=y")}, want: cloud.Result{Operation: "op/1"},
		},
		"a reference in the body: the operation": {
			reply: reply{status: 202, body: `{"operation":"op-1"}`}, want: cloud.Result{Operation: "op-1"},
		},
		"a reference that is a number: its digits": {
			reply: reply{status: 202, body: `{"operation":17}`}, want: cloud.Result{Operation: "17"},
		},
		"a server with a reference: both": {
			reply: reply{status: 202, body: `{"id":"i-1","name":"web","state":"BUILDING","operation":"op-1"}`},
			want:  cloud.Result{Operation: "op-1", Server: building},
		},
		"a reference to the server: the server alone": {
			reply: reply{status: 202, header: location("/servers/i-1"), body: `{"id":"i-1","name":"web","state":"BUILDING"}`},
			want:  cloud.Result{Server: building},
		},
		"201 with a reference: the server alone": {
			reply: reply{status: 201, header: location("/operations/op-1"), body: `{"id":"i-1","name":"web","state":"BUILDING"}`},
			want:  cloud.Result{Server: building},
		},
		"neither server nor reference: unreadable":        {reply: reply{status: 202, body: `{}`}, kind: cloud.Unreadable},
		"a reference that is an object: unreadable":       {reply: reply{status: 202, body: `{"operation":{}}`}, kind: cloud.Unreadable},
		"a reference that is a path: unreadable":          {reply: reply{status: 202, header: location("/operations/..")}, kind: cloud.Unreadable},
		"a cloud without operations: the reference alone": {reply: reply{status: 202, body: `{"operation":"op-1"}`}, caps: []cloud.Capability{cloud.Power}, kind: cloud.Unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caps := test.caps
			if caps == nil {
				caps = allCapabilities()
			}
			c := serve(t, answering(test.reply)).withCapabilities(caps...)
			for call, do := range map[string]func() (cloud.Result, error){
				"create": func() (cloud.Result, error) { return c.CreateServer(t.Context(), cloud.CreateServer{Name: "web"}) },
				"update": func() (cloud.Result, error) {
					return c.UpdateServer(t.Context(), "i-1", cloud.Update{cloud.SetPower{State: cloud.PowerOff}})
				},
			} {
				if call == "update" && test.reply.status == 201 {
					continue
				}
				got, err := do()
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", call, diff)
				}
				wantOutcome(t, err, outcome{Kind: test.kind, Uncertain: test.kind != ""})
			}
		})
	}
}

func TestAcceptedDeletionHasOperation(t *testing.T) {
	t.Parallel()
	deleting := cloud.Server{ID: "i-1", State: cloud.StateDeleting}
	for name, test := range map[string]struct {
		reply reply
		caps  []cloud.Capability
		want  cloud.Result
	}{
		"204: gone": {reply: reply{status: 204}, caps: allCapabilities()},
		"202 with a reference: the operation": {
			reply: reply{status: 202, header: map[string]string{"Location": "/operations/op-1"}}, caps: allCapabilities(),
			want: cloud.Result{Server: deleting, Operation: "op-1"},
		},
		"202 with a reference that cannot be read: being deleted": {
			reply: reply{status: 202, body: `{"operation":[]}`}, caps: allCapabilities(), want: cloud.Result{Server: deleting},
		},
		"202, a cloud without operations: being deleted": {
			reply: reply{status: 202, body: `{"operation":"op-1"}`}, want: cloud.Result{Server: deleting},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(test.reply)).withCapabilities(test.caps...)
			got, err := c.DeleteServer(t.Context(), "i-1")
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestGetOperation(t *testing.T) {
	t.Parallel()
	fault := func(kind cloud.Kind, code, detail string) cloud.Operation {
		return cloud.Operation{Done: true, Err: &cloud.Error{Kind: kind, Op: `get operation "op-1"`, Code: code, Detail: detail}}
	}
	ok := func(body string) reply { return reply{status: 200, body: body} }
	for name, test := range map[string]struct {
		reply reply
		want  cloud.Operation
		kind  cloud.Kind
	}{
		"running: its progress":              {reply: ok(`{"id":"op-1","done":false,"progress":39.6}`), want: cloud.Operation{Progress: 40}},
		"running, without progress: none":    {reply: ok(`{"done":false}`)},
		"running, with an error: not yet":    {reply: ok(`{"done":false,"error":{"code":"invalid"}}`)},
		"done: its server":                   {reply: ok(`{"done":true,"progress":100,"serverId":"i-1"}`), want: cloud.Operation{Done: true, Progress: 100, ServerID: "i-1"}},
		"a server that is a number: digits":  {reply: ok(`{"done":true,"serverId":7,"error":null}`), want: cloud.Operation{Done: true, ServerID: "7"}},
		"failed with a code: its kind":       {reply: ok(`{"done":true,"error":{"code":"quotaExceeded","detail":"the datastore is full"}}`), want: fault(cloud.Quota, "quotaExceeded", "the datastore is full")},
		"failed with another code: Failed":   {reply: ok(`{"done":true,"error":{"code":"diskBroken","title":"a disk"}}`), want: fault(cloud.Failed, "diskBroken", "a disk")},
		"failed without a reason: Failed":    {reply: ok(`{"done":true,"error":{}}`), want: fault(cloud.Failed, "", "the cloud gives no reason")},
		"failed as unavailable: Failed":      {reply: ok(`{"done":true,"error":{"code":"unavailable","detail":"host down"}}`), want: fault(cloud.Failed, "unavailable", "host down")},
		"a reason with the token: redacted":  {reply: ok(`{"done":true,"error":{"detail":"with of-the-test"}}`), want: fault(cloud.Failed, "", "with REDACTED")},
		"no done: unreadable":                {reply: ok(`{"progress":5}`), kind: cloud.Unreadable},
		"done is a text: unreadable":         {reply: ok(`{"done":"true"}`), kind: cloud.Unreadable},
		"a server without sense: unreadable": {reply: ok(`{"done":true,"serverId":[]}`), kind: cloud.Unreadable},
		"404 with the code: NotFound":        {reply: problemReply(404, "notFound"), kind: cloud.NotFound},
		"404 without a code: unproved":       {reply: reply{status: 404, media: "text/html", body: "<html>"}, kind: cloud.NotFoundUnproven},
		"403: about the operation alone":     {reply: reply{status: 403}, kind: cloud.Forbidden},
		"503: Unavailable":                   {reply: reply{status: 503, header: map[string]string{"Retry-After": "0"}}, kind: cloud.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(test.reply), func(cfg *Config) { cfg.Credentials.Token = "of-the-test" }).withCapabilities(allCapabilities()...)
			got, err := c.GetOperation(t.Context(), "op-1")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if cloud.KindOf(err) != test.kind || cloud.Uncertain(err) {
				t.Errorf("%v, want kind %q", err, test.kind)
			}
		})
	}
}

func TestCheckNameSendsFolderWhereNamesAreUniquePerFolder(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		caps []cloud.Capability
		want string
	}{
		"names are unique per folder: sent":       {[]cloud.Capability{cloud.Folders, cloud.FolderNames}, "/check/web?folder=team+a"},
		"names are unique in the cloud: not sent": {[]cloud.Capability{cloud.Folders}, "/check/web"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := answering(reply{status: 200})
			c := serve(t, answers).withCapabilities(test.caps...)
			if err := c.CheckName(t.Context(), cloud.Name{Name: "web", Folder: "team a"}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, answers.sent()[0].target); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
		})
	}
}

// A 404 of a part of a server does not mean that the server is gone.
func TestStatusThatIsNotFoundIsConfirmed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		second reply
		want   cloud.Kind
	}{
		"the server exists: Busy":         {reply{status: 200, body: `{"id":"i-1","name":"web"}`}, cloud.Busy},
		"the server is gone: NotFound":    {problemReply(404, "notFound"), cloud.NotFound},
		"the cloud is away: Unavailable":  {reply{status: 503, header: map[string]string{"Retry-After": "9"}}, cloud.Unavailable},
		"a 404 without a code: unproved":  {reply{status: 404}, cloud.NotFoundUnproven},
		"another server: not understood ": {reply{status: 200, body: `{"id":"i-2","name":"web"}`}, cloud.Unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := answering(problemReply(404, "notFound"), test.second)
			_, err := serve(t, answers).withCapabilities().ServerStatus(t.Context(), "i-1")
			if cloud.KindOf(err) != test.want {
				t.Errorf("ServerStatus: %v, want kind %s", err, test.want)
			}
		})
	}
}

func TestSizesThatAreNoWholeGiB(t *testing.T) {
	t.Parallel()
	answers := answering(reply{status: 200, body: `{"id":"i-1","name":"web","memory":0.5}`})
	c := serve(t, answers).withCapabilities(allCapabilities()...)
	got, err := c.GetServer(t.Context(), "i-1")
	if err != nil || got.MemoryMiB != 512 {
		t.Errorf("GetServer: %d MiB, %v; want 512", got.MemoryMiB, err)
	}
	_, err = c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", MemoryMiB: 512})
	wantOutcome(t, err, outcome{Kind: cloud.Rejected})
	_, err = c.UpdateServer(t.Context(), "i-1", cloud.Update{cloud.SetMemory(1536)})
	wantOutcome(t, err, outcome{Kind: cloud.Rejected})
	if n := answers.count(); n != 1 {
		t.Errorf("%d requests, want only the first", n)
	}
}
