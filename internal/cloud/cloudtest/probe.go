package cloudtest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/privatecloud/operator/internal/cloud"
)

var probeCases = []testCase{
	{name: "capabilities: those that the cloud has", run: func(ctx context.Context, t *testing.T, f Fixture) {
		got, err := f.Client.Capabilities(ctx)
		if err != nil {
			t.Fatalf("Capabilities: %v", err)
		}
		if diff := cmp.Diff(f.Has, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("Capabilities (-want +got):\n%s", diff)
		}
	}},
	{name: "a free name: may be used", run: func(ctx context.Context, t *testing.T, f Fixture) {
		wantKind(t, "CheckName", f.Client.CheckName(ctx, name("free")), "", false)
	}},
	{name: "a free name, in any script and with any sign: may be used", oddNames: true, run: func(ctx context.Context, t *testing.T, f Fixture) {
		for _, free := range oddNames() {
			wantKind(t, "CheckName("+free+")", f.Client.CheckName(ctx, free), "", false)
		}
	}},
	{name: "a prohibited name: Prohibited, not Taken", run: func(ctx context.Context, t *testing.T, f Fixture) {
		wantKind(t, "CheckName", f.Client.CheckName(ctx, f.Prohibited), cloud.Prohibited, false)
	}},
	{name: "a used name, names are unique: Taken", needs: []cloud.Capability{cloud.UniqueNames},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			used := name("used")
			mustCreate(ctx, t, f, cloud.CreateServer{Name: used})
			wantKind(t, "CheckName", f.Client.CheckName(ctx, used), cloud.Taken, false)
		}},
	{name: "the context has ended: Unavailable", run: func(ctx context.Context, t *testing.T, f Fixture) {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err := f.Client.GetServer(ended, "any")
		wantKind(t, "GetServer", err, cloud.Unavailable, false)
		_, err = f.Client.CreateServer(ended, cloud.CreateServer{Name: name("late")})
		wantKind(t, "CreateServer", err, cloud.Unavailable, false)
	}},
}

// oddNames holds names that change the path or the meaning of a request when a
// client puts them into it unescaped.
func oddNames() []string {
	return []string{
		"plain", "..", ".", "a/b", "../servers", "%2f", "%2e%2e", "a?b=c", "a#b", "a b", "a+b", "a&b;c=d", "a:b@c",
		"сервер", "服务器", "خادم", "máquina", "🖥", `back\slash`, `quo"te`, "{id}",
	}
}
