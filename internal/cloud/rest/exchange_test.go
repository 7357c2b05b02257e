package rest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/mockcloud"
)

// newMockClient returns a client of a mock cloud that has this fault.
func newMockClient(t *testing.T, fault mockcloud.Fault, change ...func(*Config)) (*Client, *mockcloud.Cloud) {
	t.Helper()
	fake, err := mockcloud.New(mockcloud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fake.AddFault(fault); err != nil {
		t.Fatal(err)
	}
	c := serve(t, fake.Handler(), change...).withCapabilities(cloud.Sizing, cloud.Resize)
	// Runs before the server closes, which waits for the calls that a fault holds.
	t.Cleanup(func() { _ = fake.Close() })
	return c, fake
}

// The error must agree with what the cloud did, which its ledger records.
func TestCreateIsUncertainWhenItMayHaveTakenEffect(t *testing.T) {
	t.Parallel()
	post := mockcloud.Match{Method: "POST", Path: "/servers"}
	for name, test := range map[string]struct {
		fault mockcloud.Fault
		kind  cloud.Kind
		made  int
	}{
		"reset before the effect":           {mockcloud.Fault{Match: post, Reset: true}, cloud.Unavailable, 0},
		"reset after the effect":            {mockcloud.Fault{Match: post, Reset: true, Answer: mockcloud.After}, cloud.Unavailable, 1},
		"500 after the effect":              {mockcloud.Fault{Match: post, Status: 500, Answer: mockcloud.After}, cloud.Unavailable, 1},
		"503 with a time":                   {mockcloud.Fault{Match: post, Status: 503, RetryAfter: "0"}, cloud.Unavailable, 0},
		"an empty body":                     {mockcloud.Fault{Match: post, EmptyBody: true}, cloud.Unreadable, 1},
		"a body cut short":                  {mockcloud.Fault{Match: post, Truncate: &mockcloud.Truncation{Keep: 10}}, cloud.Unreadable, 1},
		"a body cut short without an error": {mockcloud.Fault{Match: post, Truncate: &mockcloud.Truncation{Keep: 10, Clean: true}}, cloud.Unreadable, 1},
		"a body without an id":              {mockcloud.Fault{Match: post, Body: `{"name":"web"}`}, cloud.Unreadable, 1},
		"a body without a name":             {mockcloud.Fault{Match: post, Body: `{"id":"job-9"}`}, cloud.Unreadable, 1},
		"nulls":                             {mockcloud.Fault{Match: post, Corrupt: mockcloud.CorruptNulls}, cloud.Unreadable, 1},
		"wrong types":                       {mockcloud.Fault{Match: post, Corrupt: mockcloud.CorruptTypes}, cloud.Unreadable, 1},
		"a huge body":                       {mockcloud.Fault{Match: post, HugeBytes: 1 << 30}, cloud.Unreadable, 1},
		"a deep body":                       {mockcloud.Fault{Match: post, Depth: 100_000}, cloud.Unreadable, 1},
		"another content type":              {mockcloud.Fault{Match: post, ContentType: "text/html"}, cloud.Unreadable, 1},
		"a redirect":                        {mockcloud.Fault{Match: post, Redirect: "http://elsewhere.example/"}, cloud.Unavailable, 0},
		"an answer that is too slow":        {mockcloud.Fault{Match: post, BytesPerSecond: 1}, cloud.Unavailable, 1},
		"no answer in time":                 {mockcloud.Fault{Match: post, Hold: true, Answer: mockcloud.After}, cloud.Unavailable, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, fake := newMockClient(t, test.fault, func(cfg *Config) { cfg.Timeout = 2 * time.Second })
			err := verbs["create"](t.Context(), c)
			wantOutcome(t, err, outcome{Kind: test.kind, Uncertain: true})
			if made := len(fake.Ledger()); made != test.made || fake.CountCalls("POST", "/servers") != 1 {
				t.Errorf("%d servers from %d calls, want %d from 1", made, fake.CountCalls("POST", "/servers"), test.made)
			}
		})
	}
}

func TestCreateIsCertainWhenNothingWasSent(t *testing.T) {
	t.Parallel()
	const closed = "http://127.0.0.1:1" // no server that asks for any free port gets this one
	for name, test := range map[string]struct{ endpoint, want string }{
		"connection refused": {closed, "connection refused"},
		"no such host":       {"http://nowhere.invalid", "no such host nowhere.invalid: check the Cloud's endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var base http.RoundTripper
			if name == "no such host" {
				// The resolver of the machine that runs this may not be reachable.
				base = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
					return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{
						Err: "no such host", Name: "nowhere.invalid", Server: "10.0.0.1:53", IsNotFound: true,
					}}
				}}
			}
			c := newClientOver(t, base, test.endpoint).withCapabilities()
			err := verbs["create"](t.Context(), c)
			wantOutcome(t, err, outcome{Kind: cloud.Unavailable})
			wantText(t, err, `create server "web": `+test.want)
		})
	}
}

// rawServer answers every connection with these bytes, after the request, and closes.
func rawServer(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				if request, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.Copy(io.Discard, request.Body)
					answer(conn)
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

// The transport's own text holds the local port, which differs each time.
func TestTransportErrorTextsAreStable(t *testing.T) {
	t.Parallel()
	write := func(text string) func(net.Conn) {
		return func(conn net.Conn) { _, _ = io.WriteString(conn, text) }
	}
	for name, test := range map[string]struct {
		answer func(net.Conn)
		kind   cloud.Kind
		want   string
	}{
		"reset":    {func(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }, cloud.Unavailable, "connection reset"},
		"closed":   {func(net.Conn) {}, cloud.Unavailable, "connection closed without an answer"},
		"not HTTP": {write("SSH-2.0-OpenSSH\r\n\r\n"), cloud.Unreadable, "the answer is not HTTP: check the port of the Cloud's endpoint"},
		"endless headers": {
			func(conn net.Conn) {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX: ")
				for range 100 {
					_, _ = conn.Write(make([]byte, 1<<16))
				}
			}, cloud.Unreadable, "the headers of the answer are larger than 64 KiB",
		},
		"a body cut short": {
			write("HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"), cloud.Unreadable, "the answer was cut short",
		},
		"a chunk cut short": {
			write("HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{"), cloud.Unreadable, "the answer was cut short",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, rawServer(t, test.answer)).withCapabilities()
			err := verbs["create"](t.Context(), c)
			wantOutcome(t, err, outcome{Kind: test.kind, Uncertain: true})
			wantText(t, err, `create server "web": `+test.want)
		})
	}
}

// A gigabyte must take no more memory than a page may.
func TestHostileListingTakesBoundedMemory(t *testing.T) {
	for name, fault := range map[string]mockcloud.Fault{
		"a gigabyte":   {HugeBytes: 1 << 30},
		"deep nesting": {Depth: 10_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			fault.Match = mockcloud.Match{Path: "/servers"}
			c, fake := newMockClient(t, fault, func(cfg *Config) { cfg.Timeout = 30 * time.Second })
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := verbs["list"](t.Context(), c)
			runtime.ReadMemStats(&after)
			wantOutcome(t, err, outcome{Kind: cloud.Unreadable})
			// The buffer grows step by step, and the memory of the mock counts, too.
			if spent := (after.TotalAlloc - before.TotalAlloc) >> 20; spent > 512 {
				t.Errorf("%d MiB were allocated", spent)
			}
			if fake.CountCalls("GET", "/servers") != 1 {
				t.Errorf("asked %d times, want once", fake.CountCalls("GET", "/servers"))
			}
		})
	}
}

func TestCompressedAnswerIsBoundedByUnpackedSize(t *testing.T) {
	t.Parallel()
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(gzipped(t, strings.Repeat(" ", 4<<20)))
	}))
	err := verbs["get"](t.Context(), c)
	wantText(t, err, `get server "i-1": the answer is larger than 1 MiB`)
}

func TestCallsReuseConnections(t *testing.T) {
	t.Parallel()
	opened := make(chan struct{}, 1000)
	server := httptest.NewUnstartedServer(http.HandlerFunc(okServer))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := newClient(t, server.URL, limited(Limits{RequestsPerSecond: 1e6, Burst: 1 << 20, MaxInFlight: 32}))
	done := make(chan error)
	for range 32 {
		go func() {
			for range 20 {
				if err := verbs["get"](t.Context(), c); err != nil {
					done <- fmt.Errorf("get: %w", err)
					return
				}
			}
			done <- nil
		}()
	}
	for range 32 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	// A connection returns to the pool a moment after its answer was read, so a
	// few more than 32 are opened.
	if n := len(opened); n > 160 {
		t.Errorf("%d connections for 640 calls, want about 32", n)
	}
}
