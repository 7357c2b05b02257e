package cloudtest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/privatecloud/operator/internal/cloud"
)

var folderNames = []cloud.Capability{cloud.UniqueNames, cloud.Folders, cloud.FolderNames}

var probeCases = []testCase{
	{name: "capabilities: those that the cloud has", run: func(ctx context.Context, t *testing.T, f Fixture) {
		got, err := f.Client.Capabilities(ctx)
		if err != nil {
			t.Fatalf("Capabilities: %v", err)
		}
		if diff := cmp.Diff(f.Has, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("Capabilities (-want +got):\n%s", diff)
		}
		if got == nil {
			t.Error("Capabilities: nil, which means that nobody knows what the cloud can do; want an empty set")
		}
	}},
	{name: "a free name: may be used", run: func(ctx context.Context, t *testing.T, f Fixture) {
		wantKind(t, "CheckName", f.Client.CheckName(ctx, cloud.Name{Name: name("free")}), "", false)
	}},
	{name: "a free name, in any script and with any sign: may be used", oddNames: true, run: func(ctx context.Context, t *testing.T, f Fixture) {
		for _, free := range f.names() {
			wantKind(t, "CheckName("+free+")", f.Client.CheckName(ctx, cloud.Name{Name: free}), "", false)
		}
	}},
	{name: "a prohibited name: Prohibited, not Taken", run: func(ctx context.Context, t *testing.T, f Fixture) {
		wantKind(t, "CheckName", f.Client.CheckName(ctx, cloud.Name{Name: f.Prohibited}), cloud.Prohibited, false)
	}},
	{name: "a used name, names are unique: Taken", needs: []cloud.Capability{cloud.UniqueNames},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			used := name("used")
			mustCreate(ctx, t, f, cloud.CreateServer{Name: used})
			wantKind(t, "CheckName", f.Client.CheckName(ctx, cloud.Name{Name: used}), cloud.Taken, false)
		}},
	{name: "a name used in another folder, names are unique per folder: may be used", needs: folderNames,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			used := name("shared")
			first := mustCreate(ctx, t, f, cloud.CreateServer{Name: used, Folder: "team-a"})
			wantKind(t, "CheckName", f.Client.CheckName(ctx, cloud.Name{Name: used, Folder: "team-a"}), cloud.Taken, false)
			wantKind(t, "CheckName", f.Client.CheckName(ctx, cloud.Name{Name: used}), "", false)
			wantServers(ctx, t, f, first.ID, mustCreate(ctx, t, f, cloud.CreateServer{Name: used}).ID)
		}},
	{name: "a name used in another folder, names are unique in the cloud: Taken", needs: []cloud.Capability{cloud.UniqueNames, cloud.Folders},
		lacks: []cloud.Capability{cloud.FolderNames}, run: func(ctx context.Context, t *testing.T, f Fixture) {
			used := name("alone")
			mustCreate(ctx, t, f, cloud.CreateServer{Name: used, Folder: "team-a"})
			wantKind(t, "CheckName", f.Client.CheckName(ctx, cloud.Name{Name: used}), cloud.Taken, false)
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

// names returns the names that cases use where names may be odd.
func (f Fixture) names() []string {
	if f.Names != nil {
		return f.Names
	}
	return oddNames()
}

// oddNames holds names that change the path or the meaning of a request when a
// client puts them into it unescaped.
func oddNames() []string {
	return []string{
		"plain", "..", ".", "a/b", "../servers", "%2f", "%2e%2e", "a?b=c", "a#b", "a b", "a+b", "a&b;c=d", "a:b@c",
		"сервер", "服务器", "خادم", "máquina", "🖥", `back\slash`, `quo"te`, "{id}",
	}
}
