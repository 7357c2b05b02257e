package cloudtest_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/cloudtest"
	"github.com/privatecloud/operator/internal/cloud/rest"
	"github.com/privatecloud/operator/mockcloud"
	"github.com/privatecloud/operator/mockcloud/openapi"
)

func TestCoreCloud(t *testing.T) {
	cloudtest.Run(t, mock(mockcloud.Options{Profile: mockcloud.Core}))
}

func TestCoreCloudWithoutUniqueNames(t *testing.T) {
	cloudtest.Run(t, mock(without(mockcloud.Core, mockcloud.UniqueNames)))
}

func TestExtendedCloud(t *testing.T) {
	cloudtest.Run(t, mock(mockcloud.Options{}))
}

func TestExtendedCloudWithSessions(t *testing.T) {
	cloudtest.Run(t, mock(mockcloud.Options{Token: "of-the-suite", Username: "operator", Password: "secret-of-the-suite"}))
}

func TestExtendedCloudThatRefusesKeysInProgress(t *testing.T) {
	cloudtest.Run(t, mock(mockcloud.Options{
		Behaviour: mockcloud.Behaviour{Latency: operationTime}, Quirks: mockcloud.Quirks{KeysInProgress: true},
	}))
}

// A cloud may lack any one capability. The cases of the others must not need it.
func TestExtendedCloudWithoutOneCapability(t *testing.T) {
	for _, name := range mockcloud.AllCapabilities {
		t.Run(string(name), func(t *testing.T) { cloudtest.Run(t, mock(without(mockcloud.Extended, name))) })
	}
}

func TestExtendedCloudWithNoCapabilities(t *testing.T) {
	cloudtest.Run(t, mock(without(mockcloud.Extended, mockcloud.AllCapabilities...)))
}

func TestExtendedCloudWithOperations(t *testing.T) {
	cloudtest.Run(t, mock(with(mockcloud.Operations)))
}

// Every change of a server is an operation, not only those that a case expects.
func TestExtendedCloudThatOnlyHasOperations(t *testing.T) {
	opts := with(mockcloud.Operations)
	opts.OperationTime = operationTime
	cloudtest.Run(t, mock(opts))
}

func TestExtendedCloudWithEvents(t *testing.T) {
	cloudtest.Run(t, mock(with(mockcloud.Events)))
}

func TestExtendedCloudWithNamesPerFolder(t *testing.T) {
	cloudtest.Run(t, mock(with(mockcloud.FolderNames)))
}

// operationTime is how long operations of the mock cloud take.
const operationTime = mockcloud.Duration(30 * time.Millisecond)

func with(name mockcloud.Capability) mockcloud.Options {
	return mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{name: true}}
}

func without(profile mockcloud.Profile, names ...mockcloud.Capability) mockcloud.Options {
	opts := mockcloud.Options{Profile: profile, Capabilities: map[mockcloud.Capability]bool{}}
	for _, name := range names {
		opts.Capabilities[name] = false
	}
	return opts
}

// requests are what the client sends for each operation.
var requests = map[cloudtest.Op]mockcloud.Match{
	cloudtest.OpCreateServer:  {Method: http.MethodPost, Path: "/servers"},
	cloudtest.OpUpdateServer:  {Method: http.MethodPatch, Path: "/servers/*"},
	cloudtest.OpDeleteServer:  {Method: http.MethodDelete, Path: "/servers/*"},
	cloudtest.OpCreateNetwork: {Method: http.MethodPost, Path: "/networks"},
	cloudtest.OpUpdateNetwork: {Method: http.MethodPatch, Path: "/networks/*"},
	cloudtest.OpDeleteNetwork: {Method: http.MethodDelete, Path: "/networks/*"},

	cloudtest.OpCreateSnapshot: {Method: http.MethodPost, Path: "/servers/*/snapshots"},
	cloudtest.OpRevert:         {Method: http.MethodPost, Path: "/servers/*/snapshots/*/revert"},
}

// mock returns fixtures of the mock cloud behind a server that checks every
// request and answer against the cloud's OpenAPI document.
func mock(opts mockcloud.Options) func(*testing.T) cloudtest.Fixture {
	return func(t *testing.T) cloudtest.Fixture {
		t.Helper()
		fake, err := mockcloud.New(opts)
		if err != nil {
			t.Fatalf("mockcloud.New: %v", err)
		}
		server := httptest.NewServer(openapi.Handler(fake.Handler(), func(violation error) {
			t.Errorf("not as documented: %v", violation)
		}))
		client, err := rest.New(rest.Config{
			Name: "mock", Endpoint: server.URL,
			Credentials: rest.Credentials{Username: opts.Username, Password: opts.Password},
			UniqueNames: opts.Profile == mockcloud.Core && has(opts, mockcloud.UniqueNames),
			Limits:      rest.Limits{RequestsPerSecond: 10000, Burst: 10000, MaxInFlight: 32},
		})
		if err != nil {
			t.Fatalf("rest.New: %v", err)
		}
		t.Cleanup(func() {
			client.Close(t.Context())
			server.Close()
			if err := fake.Close(); err != nil {
				t.Errorf("closing the mock cloud: %v", err)
			}
		})
		return cloudtest.Fixture{
			Client: client, Has: truth(opts), Prohibited: "forbidden", Codes: true, Filters: true,
			Sent: func() int { return fake.CountCalls("", "") },
			Hosts: []cloud.Host{
				{Name: "host-1", AvailableHours: 8}, {Name: "host-2", GPU: true, AvailableHours: 16},
				{Name: "host-3", AvailableHours: 24}, {Name: "host-4", GPU: true, AvailableHours: 32},
			},
			RootDisk: 12 << 10, SmallRootDisk: 9 << 10, DiskTypes: [2]string{"standard", "fast"},
			KeptDisks: func(_ *testing.T, id string) (names []string) {
				for _, entry := range fake.Ledger() {
					if entry.ServerID == id {
						names = append(names, entry.KeptDisks...)
					}
				}
				return names
			},
			Zone: "zone-a", External: "ext-net", Reach: func(*testing.T) cloudtest.Reach { return cloudtest.Reach{Groups: [2]string{"ssh", "web"}} },
			PublicAddresses: func(*testing.T) (addresses []string) {
				for _, s := range fake.Servers() {
					if s.PublicAddress != nil {
						addresses = append(addresses, s.PublicAddress.Address)
					}
				}
				return addresses
			},
			Operating: func(t *testing.T, on bool) {
				behave(t, fake, func(b *mockcloud.Behaviour) {
					b.OperationTime = 0
					if on {
						b.OperationTime = operationTime
					}
				})
			},
			FailOperations: func(t *testing.T) func() {
				behave(t, fake, func(b *mockcloud.Behaviour) { b.FailOperations = "*" })
				return func() { behave(t, fake, func(b *mockcloud.Behaviour) { b.FailOperations = "" }) }
			},
			HasUserData: func(_ *testing.T, id string, data cloud.UserData) bool {
				return fake.UserDataSHA256(id) == fmt.Sprintf("%x", sha256.Sum256(data))
			},
			EndWatches: func(*testing.T) { fake.DropStreams() },
			LoseAnswer: func(t *testing.T, op cloudtest.Op) func() {
				id, err := fake.AddFault(mockcloud.Fault{Match: requests[op], Answer: mockcloud.After, Reset: true})
				if err != nil {
					t.Fatalf("AddFault: %v", err)
				}
				return func() {
					if err := fake.RemoveFault(id); err != nil {
						t.Errorf("RemoveFault: %v", err)
					}
				}
			},
		}
	}
}

func behave(t *testing.T, fake *mockcloud.Cloud, change func(*mockcloud.Behaviour)) {
	t.Helper()
	b := fake.Behaviour()
	change(&b)
	if err := fake.SetBehaviour(b); err != nil {
		t.Fatalf("SetBehaviour: %v", err)
	}
}

func has(opts mockcloud.Options, name mockcloud.Capability) bool {
	on, set := opts.Capabilities[name]
	return on || (!set && name.Default())
}

func truth(opts mockcloud.Options) cloud.Capabilities {
	names := []cloud.Capability{}
	if opts.Profile != mockcloud.Core {
		names = append(names, cloud.Sizing)
	}
	for _, name := range mockcloud.AllCapabilities {
		if has(opts, name) && (opts.Profile != mockcloud.Core || name == mockcloud.UniqueNames) {
			names = append(names, cloud.Capability(name))
		}
		if name == mockcloud.Power && has(opts, name) && opts.Profile != mockcloud.Core {
			names = append(names, cloud.PowerAtCreate)
		}
	}
	return cloud.NewCapabilities(names...)
}
