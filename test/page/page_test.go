// Package page_test shows the page of the mock cloud to a headless Chromium.
// run.sh sets the variables CHROMIUM and MOCKCLOUD.
package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/privatecloud/operator/test/page/browser"
)

// chromium is the browser, which all tests share.
var chromium context.Context

func TestMain(m *testing.M) {
	ctx, end, err := browser.Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	chromium = ctx
	code := m.Run()
	end()
	os.Exit(code)
}

// fixture is the page of a mock cloud in a tab.
type fixture struct {
	*testing.T
	mock *browser.Mock
	tab  *browser.Tab
}

// open starts a mock cloud and opens its page. The test continues in parallel with
// others. In the end, the page must have caused no request to another address and no
// message on the console.
func open(t *testing.T, args ...string) *fixture {
	t.Helper()
	t.Parallel()
	mock, err := browser.StartMock(context.Background(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mock.Stop(); err != nil {
			t.Error(err)
		}
	})
	tab, end, err := browser.Open(chromium, mock.Admin+"/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	t.Cleanup(func() {
		for _, url := range tab.Requests() {
			if !strings.HasPrefix(url, mock.Admin+"/") {
				t.Errorf("the page asked for %s", url)
			}
		}
		if problems := tab.Problems(); len(problems) > 0 {
			t.Errorf("the console has %q", problems)
		}
	})
	return &fixture{T: t, mock: mock, tab: tab}
}

// call calls the mock cloud, which must answer with the status want.
func (f *fixture) call(want int, method, url, body string) string {
	f.Helper()
	status, answer := browser.Call(f.Context(), method, url, body)
	if status != want {
		f.Fatalf("%s %s: got %d %s, want %d", method, url, status, answer, want)
	}
	return answer
}

// create creates a server and returns its ID.
func (f *fixture) create(name string) string {
	f.Helper()
	body, err := json.Marshal(map[string]string{"name": name})
	if err != nil {
		f.Fatal(err)
	}
	var server struct{ ID string }
	if err := json.Unmarshal([]byte(f.call(201, "POST", f.mock.API+"/servers", string(body))), &server); err != nil {
		f.Fatal(err)
	}
	return server.ID
}

func (f *fixture) until(expression string) {
	f.Helper()
	if err := f.tab.Until(expression); err != nil {
		f.Fatal(err)
	}
}

// evaluate evaluates a JavaScript expression to a value.
func evaluate[T any](f *fixture, expression string) T {
	f.Helper()
	value, err := browser.Evaluate[T](f.tab, expression)
	if err != nil {
		f.Fatal(err)
	}
	return value
}

// press presses keys.
func (f *fixture) press(keys string) {
	f.Helper()
	if err := f.tab.Do(chromedp.KeyEvent(keys)); err != nil {
		f.Fatal(err)
	}
}

// tabTo presses Tab until the element that matches has the focus.
func (f *fixture) tabTo(selector string) {
	f.Helper()
	for range 40 {
		f.press(kb.Tab)
		if evaluate[bool](f, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			return
		}
	}
	f.Fatalf("Tab does not reach %s", selector)
}

// shows returns an expression that is true when an element contains a text.
func shows(id, text string) string {
	return fmt.Sprintf("document.getElementById(%q).textContent.includes(%q)", id, text)
}

func TestPageIsServedByTheMockAlone(t *testing.T) {
	f := open(t)
	f.until(shows("hosts-body", "host-1"))
	got := f.tab.Requests()
	slices.Sort(got)
	var want []string
	for _, path := range []string{"/", "/admin/overview?filter=", "/page/faults.js", "/page/graph.js", "/page/icon.svg", "/page/page.css", "/page/page.js", "/page/table.js"} {
		want = append(want, f.mock.Admin+path)
	}
	// Chromium fetches the icon when it likes.
	got = slices.DeleteFunc(got, func(url string) bool { return strings.HasSuffix(url, ".svg") })
	want = slices.DeleteFunc(want, func(url string) bool { return strings.HasSuffix(url, ".svg") })
	if !slices.Equal(got, want) {
		t.Errorf("requests: got %q, want %q", got, want)
	}
}

func TestCreatedAndDeletedServerIsShownLive(t *testing.T) {
	f := open(t)
	id := f.create("web")
	f.until(shows("servers-body", "web"))
	f.until(shows("servers-body", "ACTIVE"))
	f.until(shows("summary", "Servers1"))
	f.until(shows("ledger-body", "create"))
	f.call(201, "POST", f.mock.API+"/networks", `{"name":"front","cidr":"10.0.0.0/24","gateway":"10.0.0.1"}`)
	f.until(shows("networks-body", "front"))

	f.call(204, "DELETE", f.mock.API+"/servers/"+id, "")
	f.until("!" + shows("servers-body", "web"))
	f.until(shows("ledger-body", "delete"))
}

func TestPageConnectsAgainWhenTheStreamEnds(t *testing.T) {
	f := open(t)
	f.call(204, "DELETE", f.mock.Admin+"/admin/streams", "")
	f.until(shows("connection", "Disconnected"))
	f.until(shows("connection", "Live"))
	f.create("web")
	f.until(shows("servers-body", "web"))
}

func TestPausedPageDoesNotChange(t *testing.T) {
	f := open(t)
	f.tabTo("#pause")
	f.press(" ")
	f.until(shows("connection", "Paused"))
	f.create("web")
	// Another tab shows the server, and gets more overviews.
	other, end, err := browser.Open(chromium, f.mock.Admin+"/")
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if err := other.Until(shows("servers-body", "web") + `&& /In the last ([2-9]|..) s/.test(document.getElementById("graph-caption").textContent)`); err != nil {
		t.Fatal(err)
	}
	if rows := evaluate[int](f, `document.getElementById("servers-body").rows.length`); rows != 0 {
		t.Errorf("the paused page shows %d servers, want none", rows)
	}
	f.press(" ")
	f.until(shows("servers-body", "web"))
}

func TestGraphFollowsTheUtilisation(t *testing.T) {
	f := open(t, "--utilisation=fixed:50")
	id := f.create("web")
	const points = `Array.from(document.querySelectorAll("#graph .curve")[0].points)`
	f.until(points + ".length >= 2")
	f.until(shows("graph-caption", "Mean of all servers: 50 %"))
	f.call(200, "PATCH", f.mock.Admin+"/admin/servers/"+id, `{"cpuUtilization":100}`)
	f.until(shows("graph-caption", ": 50–100 %"))
	heights := evaluate[[]float64](f, points+".map((point) => point.y)")
	if first, last := heights[0], heights[len(heights)-1]; last >= first {
		t.Errorf("the curve goes from %v to %v, want it to rise (y decreases)", first, last)
	}
	width := evaluate[float64](f, `document.querySelector("#graph .curve").getBoundingClientRect().width`)
	if width < 100 {
		t.Errorf("the curve is %v pixels wide", width)
	}
}

func TestHostileNameIsShownAsText(t *testing.T) {
	f := open(t)
	const hostile = `<img src=x onerror=fetch("http://evil.example/")><script>document.title="broken"</script>`
	for _, server := range []string{hostile, "\u202egnp.exe"} {
		body, err := json.Marshal(map[string]string{"name": server, "host": server})
		if err != nil {
			t.Fatal(err)
		}
		f.call(201, "POST", f.mock.Admin+"/admin/servers", string(body))
	}
	fault, err := json.Marshal(map[string]any{"id": hostile, "match": map[string]string{"path": "/none"}, "status": 500})
	if err != nil {
		t.Fatal(err)
	}
	f.call(201, "POST", f.mock.Admin+"/faults", string(fault))
	f.until(shows("servers-body", hostile))
	f.until(shows("ledger-body", hostile))
	f.until(shows("faults", hostile))
	type state struct {
		Elements int    `json:"elements"`
		Title    string `json:"title"`
		Isolated bool   `json:"isolated"`
	}
	found := evaluate[state](f, `({
		elements: document.querySelectorAll("main img, main script").length,
		title: document.title,
		isolated: getComputedStyle(document.querySelector("#servers-body th")).unicodeBidi === "isolate",
	})`)
	if want := (state{Title: "Mock cloud", Isolated: true}); found != want {
		t.Errorf("the name was not shown as text: got %+v, want %+v", found, want)
	}
}

func TestPageStaysUsableWithManyServers(t *testing.T) {
	f := open(t, "--seed-servers=20000")
	f.until(shows("servers-caption", "Servers: 100 of 20,000"))
	f.tabTo("#filter")
	f.press("STRANGER-0499")
	f.until(shows("found", "10 servers match") + "&&" + shows("servers-caption", "Servers that match: 10"))
	f.create("one-more")
	f.until(shows("summary", "Servers20,001"))
	if rows := evaluate[int](f, `document.getElementById("servers-body").rows.length`); rows != 10 {
		t.Errorf("got %d rows, want the 10 that match", rows)
	}
}
