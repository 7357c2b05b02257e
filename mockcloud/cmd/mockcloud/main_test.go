package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/privatecloud/operator/mockcloud"
)

func output(t *testing.T) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func TestFlagsSetOptions(t *testing.T) {
	got, err := parse([]string{
		"--addr=:0", "--profile=core", "--capability=labels=off,power=on", "--capability=hosts=off",
		"--build-time=2s", "--prohibited-name=a", "--prohibited-name=b*", "--template=t", "--host=h:true:5:z", "--host=i",
		"--token=x", "--quota=7", "--quirks=readLag=5s,normalizeNames", "--quirks=plain404=html", "--admin-bind-address=0", "--fault", `{"match":{"method":"POST"},"status":503}`, "--data=/d", "--seed-servers=3",
	}, output(t))
	if err != nil {
		t.Fatal(err)
	}
	want := mockcloud.Options{
		Profile:      mockcloud.Core,
		Capabilities: map[mockcloud.Capability]bool{mockcloud.Labels: false, mockcloud.Power: true, mockcloud.Hosts: false},
		Behaviour: mockcloud.Behaviour{
			BuildTime: mockcloud.Duration(2e9), ProhibitedNames: []string{"a", "b*"}, Templates: []string{"t"},
			Quota: 7, Utilisation: "fixed:50",
		},
		Hosts: []mockcloud.Host{{Name: "h", GPU: true, AvailableHours: 5, Zone: "z"}, {Name: "i"}},
		Token: "x", DataFile: "/d", SeedServers: 3, CallLog: 1000,
		Faults: []mockcloud.Fault{{Match: mockcloud.Match{Method: "POST"}, Status: 503}},
		Quirks: mockcloud.Quirks{ReadLag: mockcloud.Duration(5e9), NormalizeNames: true, Plain404: "html"},
	}
	if diff := cmp.Diff(want, got.options, cmpopts.EquateEmpty()); diff != "" || got.addr != ":0" || got.adminAddr != "0" {
		t.Errorf("options (-want +got), address %s, admin address %s:\n%s", got.addr, got.adminAddr, diff)
	}
}

func TestAdminPortIsOnLoopbackByDefault(t *testing.T) {
	got, err := parse(nil, output(t))
	if err != nil {
		t.Fatal(err)
	}
	host, _, err := net.SplitHostPort(got.adminAddr)
	if ip := net.ParseIP(host); err != nil || !ip.IsLoopback() || got.handoverAddr != off {
		t.Errorf("the admin port is at %s and the handover at %s, want loopback and none (%v)", got.adminAddr, got.handoverAddr, err)
	}
}

func TestInvalidFlagsAreRejected(t *testing.T) {
	for name, args := range map[string][]string{
		"a capability without on or off": {"--capability=labels"}, "no duration": {"--build-time=soon"},
		"a fault that is no JSON": {"--fault={"}, "a fault with an unknown field": {"--fault", `{"nonsense":1}`},
		"a host without a name": {"--host=:true"}, "a host whose GPU is neither true nor false": {"--host=a:maybe"},
		"a host whose hours are no number": {"--host=a:true:x"}, "a host with too many parts": {"--host=a:true:1:z:2"},
		"a certificate without a key": {"--tls-cert=x"}, "an unknown quirk": {"--quirks=readlag=5s"}, "no port of the API": {"--addr=0"}, "an unknown flag": {"--nonsense"}, "an argument that is no flag": {"extra"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(args, output(t)); err == nil {
				t.Errorf("%q is accepted", args)
			}
		})
	}
}

func TestHelpListsFlags(t *testing.T) {
	out := output(t)
	if _, err := parse([]string{"--help"}, out); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("got %v, want flag.ErrHelp", err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"-addr", "-profile", "-capability", "-fault", "-data", "-build-time", "-token", "-quirks", "-admin-bind-address"} {
		if !strings.Contains(string(text), name) {
			t.Errorf("the help does not contain %s", name)
		}
	}
}

// TestRunStopsAndStartsAgain does what a deployment does: serve, stop on a signal
// with an open stream, and start again with the same data.
func TestRunStopsAndStartsAgain(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for _, want := range []string{`"name":"web"`, `"name":"web"`} {
		out := output(t)
		ctx, stop := context.WithCancel(t.Context())
		listening := make(chan ports, 1)
		stopped := make(chan error, 1)
		go func() {
			stopped <- run(ctx, []string{"--addr=127.0.0.1:0", "--admin-bind-address=127.0.0.1:0", "--data=" + data, "--capability=events=on"},
				out, func(open ports) { listening <- open })
		}()
		open := <-listening
		url := open.api.url()
		answer, err := http.Post(url+"/servers", "application/json", strings.NewReader(`{"name":"web"}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		stream, err := http.Get(url + "/events")
		if err != nil {
			t.Fatal(err)
		}
		overviews, err := http.Get(open.admin.url() + "/admin/overview")
		if err != nil {
			t.Fatal(err)
		}
		list, err := http.Get(url + "/servers")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(list.Body)
		if err != nil || strings.Count(string(body), want) != 1 {
			t.Errorf("got %s %v, want %s once", body, err, want)
		}
		_ = list.Body.Close()
		stop()
		if err := <-stopped; err != nil {
			t.Errorf("stopping: %v", err)
		}
		_ = stream.Body.Close()
		if body, err := io.ReadAll(overviews.Body); err != nil || !strings.Contains(string(body), "event: servers") {
			t.Errorf("the stream of the page: got %s %v, want it complete", body, err)
		}
		_ = overviews.Body.Close()
		log, err := os.ReadFile(out.Name())
		for _, want := range []string{"url=" + url, "admin=" + open.admin.url()} {
			if err != nil || !strings.Contains(string(log), want) {
				t.Errorf("the log does not contain %s: %s %v", want, log, err)
			}
		}
	}
}

func TestEachPortServesItsOwnEndpointsOnly(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	listening := make(chan ports, 1)
	stopped := make(chan error, 1)
	args := []string{"--addr=127.0.0.1:0", "--admin-bind-address=127.0.0.1:0", "--handover-bind-address=127.0.0.1:0"}
	go func() {
		stopped <- run(ctx, args, output(t), func(open ports) { listening <- open })
	}()
	open := <-listening
	for path, want := range map[string][3]int{
		"/servers":         {http.StatusOK, http.StatusNotFound, http.StatusNotFound},
		"/healthz":         {http.StatusOK, http.StatusOK, http.StatusNotFound},
		"/faults":          {http.StatusNotFound, http.StatusOK, http.StatusNotFound},
		"/metrics":         {http.StatusNotFound, http.StatusOK, http.StatusNotFound},
		"/admin/behaviour": {http.StatusNotFound, http.StatusOK, http.StatusNotFound},
		"/admin/handover":  {http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusMethodNotAllowed},
	} {
		for i, at := range open.list() {
			answer, err := http.Get(at.url() + path)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != want[i] {
				t.Errorf("GET %s on port %d of API, admin and handover: got %d, want %d", path, i, answer.StatusCode, want[i])
			}
		}
	}
	stop()
	if err := <-stopped; err != nil {
		t.Errorf("stopping: %v", err)
	}
}

func TestRunReturnsAnErrorIfItCannotOpen(t *testing.T) {
	for name, args := range map[string][]string{
		"an address of another machine": {"--addr=256.0.0.1:1"},
		"an admin address of another":   {"--addr=127.0.0.1:0", "--admin-bind-address=256.0.0.1:1"},
		"a handover address of another": {"--addr=127.0.0.1:0", "--admin-bind-address=0", "--handover-bind-address=256.0.0.1:1"},
		"an unknown profile":            {"--profile=half"},
		"data in a folder":              {"--data=" + t.TempDir()},
		"no certificate":                {"--addr=127.0.0.1:0", "--admin-bind-address=0", "--tls-cert=/none", "--tls-key=/none"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), args, output(t), nil); err == nil {
				t.Errorf("%q: got no error", args)
			}
		})
	}
}
