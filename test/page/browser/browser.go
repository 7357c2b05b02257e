// Package browser drives a headless Chromium that shows the page of a mock cloud.
//
//	browser.go   the browser and its tabs
//	mock.go      the mock cloud, a process
package browser

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long Until waits. It only ends what hangs.
const patience = time.Minute

// Start starts the Chromium that the variable CHROMIUM names, and returns a context in
// which tabs are opened. It resolves no name, so that only this machine can be reached.
func Start(ctx context.Context) (context.Context, context.CancelFunc, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(os.Getenv("CHROMIUM")),
		chromedp.WindowSize(1280, 900),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("force-color-profile", "srgb"),
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, endAllocator := chromedp.NewExecAllocator(ctx, options...)
	browser, endBrowser := chromedp.NewContext(allocator)
	end := func() { endBrowser(); endAllocator() }
	if err := chromedp.Do(browser); err != nil {
		end()
		return nil, nil, fmt.Errorf("starting Chromium: %w", err)
	}
	return browser, end, nil
}

// Action is something to do in a tab.
type Action = chromedp.Action[chromedp.Void]

// Send returns the action that sends a command of the DevTools protocol, whose result is
// not needed.
func Send[P, R any](command cdp.Command[P, R], params P) Action {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, command, params)
		return err
	})
}

// Tab is a tab of the browser.
type Tab struct {
	ctx context.Context

	mu       sync.Mutex
	requests []string
	problems []string
}

// Open opens a URL in a new tab, and waits until the page is live.
func Open(browser context.Context, url string) (*Tab, context.CancelFunc, error) {
	t := &Tab{}
	ctx, end := chromedp.NewContext(browser, chromedp.WithListener(t.record))
	t.ctx = ctx
	err := t.Do(Send(network.Enable, network.EnableParams{}), Send(cdplog.Enable, cdp.Empty{}), chromedp.Navigate(url))
	if err != nil {
		end()
		return nil, nil, fmt.Errorf("opening %s: %w", url, err)
	}
	if err := t.Until(`document.getElementById("connection").textContent === "Live"`); err != nil {
		end()
		return nil, nil, err
	}
	return t, end, nil
}

func (t *Tab) record(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		t.requests = append(t.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		t.problems = append(t.problems, e.ExceptionDetails.Text)
	case *cdplog.EventEntryAdded:
		t.problems = append(t.problems, e.Entry.Text+" "+e.Entry.URL)
	case *runtime.EventConsoleAPICalled:
		t.problems = append(t.problems, e.Type.String())
	}
}

// Requests returns the URLs that the page asked for.
func (t *Tab) Requests() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.requests...)
}

// Problems returns the errors and the messages on the console, such as violations of
// the Content-Security-Policy.
func (t *Tab) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.problems...)
}

// Do runs actions in the tab.
func (t *Tab) Do(actions ...Action) error {
	if err := chromedp.Do(t.ctx, actions...); err != nil {
		return fmt.Errorf("in the page: %w", err)
	}
	return nil
}

// Get runs an action in the tab that returns a value.
func Get[T any](t *Tab, action chromedp.Action[T]) (T, error) {
	value, err := chromedp.Run(t.ctx, action)
	if err != nil {
		return value, fmt.Errorf("in the page: %w", err)
	}
	return value, nil
}

// Evaluate evaluates a JavaScript expression, or the promise that it is, to a value.
func Evaluate[T any](t *Tab, expression string) (T, error) {
	return Get(t, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Until waits until a JavaScript expression is true. It returns an error with the text
// of the page if it does not become so.
func (t *Tab) Until(expression string) error {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		holds, err := Evaluate[bool](t, expression)
		if err == nil && holds {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			text, _ := Evaluate[string](t, "document.body.innerText")
			return fmt.Errorf("waiting for %s: %w; the console has %q\n%s", expression, cmp.Or(err, ctx.Err()), t.Problems(), text)
		}
	}
}

// Forget removes the problems that a test expects.
func (t *Tab) Forget(expected func(string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = slices.DeleteFunc(t.problems, expected)
}
