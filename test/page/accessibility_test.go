package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/privatecloud/operator/test/page/browser"
)

// prefers sets the colour scheme that the user prefers.
func prefers(scheme string) browser.Action {
	return browser.Send(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// contrasts returns the texts whose contrast with their background is below 4.5:1, the
// limit of WCAG 2.2 AA for text of any size, and the number of all texts.
const contrasts = `(() => {
	const parse = (color) => color.match(/[\d.]+/g).map(Number);
	const luminance = (color) => {
		const [r, g, b] = parse(color).map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const background = (element) => {
		for (let at = element; at; at = at.parentElement) {
			const color = getComputedStyle(at).backgroundColor;
			if (parse(color)[3] !== 0) return color;
		}
		return "rgb(255, 255, 255)";
	};
	const low = [];
	let checked = 0;
	for (const element of document.querySelectorAll("body *:not(noscript)")) {
		if (!Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
		checked++;
		const style = getComputedStyle(element);
		const pair = [luminance(element.namespaceURI.endsWith("svg") ? style.fill : style.color), luminance(background(element))].sort((a, b) => b - a);
		const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
		if (ratio < 4.5) low.push(element.textContent.trim() + " " + ratio.toFixed(2));
	}
	return { checked, low, background: background(document.body) };
})()`

func TestLightAndDarkSchemesDifferAndHaveContrast(t *testing.T) {
	f := open(t, "--seed-servers=3")
	f.call(201, "POST", f.mock.Admin+"/faults", `{"id":"outage","match":{"path":"/none"},"status":503}`)
	f.until(shows("servers-body", "stranger") + "&&" + shows("faults", "outage"))
	f.tabTo("#pause")
	f.press(" ")
	backgrounds := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		if err := f.tab.Do(prefers(scheme)); err != nil {
			t.Fatal(err)
		}
		f.until(fmt.Sprintf("matchMedia('(prefers-color-scheme: %s)').matches", scheme))
		found := evaluate[struct {
			Checked    int      `json:"checked"`
			Low        []string `json:"low"`
			Background string   `json:"background"`
		}](f, contrasts)
		if found.Checked < 60 || len(found.Low) > 0 {
			t.Errorf("%s: of %d texts, these have too little contrast: %q", scheme, found.Checked, found.Low)
		}
		backgrounds[found.Background] = true
	}
	if len(backgrounds) != 2 {
		t.Errorf("the schemes have the same background: %v", backgrounds)
	}
}

// controls are the roles of what a user can operate or must be able to find.
var controls = []string{
	"button", "checkbox", "switch", "link", "searchbox", "textbox", "combobox", "slider", "region", "table", "group", "image", "img",
}

func TestEveryControlHasANameInTheAccessibilityTree(t *testing.T) {
	f := open(t, "--seed-servers=3")
	f.call(201, "POST", f.mock.Admin+"/faults", `{"id":"mine","match":{"path":"/none"},"status":503}`)
	f.until(shows("servers-body", "stranger") + "&&" + shows("faults", "mine"))
	tree, err := browser.Get(f.tab, func(ctx context.Context, target *chromedp.Target) (accessibility.GetFullAXTreeResult, error) {
		return cdp.Call(ctx, target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	for _, node := range tree.Nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		role := text(t, node.Role)
		if !slices.Contains(controls, role) && role != "status" {
			continue
		}
		name := text(t, node.Name)
		if name == "" && role != "status" {
			t.Errorf("a %s has no name", role)
		}
		names[role] = append(names[role], name)
	}
	for role, want := range map[string]string{
		"button": "Remove mine", "switch": "Outage", "searchbox": "Filter by name, ID, state or host",
		"link": "Skip to the servers", "table": "Servers: 3", "status": "",
	} {
		if !slices.Contains(names[role], want) {
			t.Errorf("there is no %s with the name %q: %q", role, want, names[role])
		}
	}
}

func text(t *testing.T, value *accessibility.Value) string {
	t.Helper()
	if value == nil {
		return ""
	}
	var out string
	if err := json.Unmarshal(value.Value, &out); err != nil {
		t.Fatalf("decoding %s: %v", value.Value, err)
	}
	return out
}

func TestEveryControlIsReachedByTabAndShowsTheFocus(t *testing.T) {
	f := open(t)
	f.until(shows("hosts-body", "host-1"))
	want := evaluate[[]string](f, `Array.from(document.querySelectorAll("a, button, input, [tabindex='0']"), (element, i) => element.dataset.test = String(i))`)
	var got []string
	for range want {
		f.press(kb.Tab)
		at := evaluate[struct {
			Test    string `json:"test"`
			Visible bool   `json:"visible"`
		}](f, `(() => {
			const style = getComputedStyle(document.activeElement);
			return {
				test: document.activeElement.dataset.test,
				visible: style.outlineStyle === "solid" && parseFloat(style.outlineWidth) >= 2 && document.activeElement.getBoundingClientRect().left >= 0,
			};
		})()`)
		if !at.Visible {
			t.Errorf("the focus at control %s is not visible", at.Test)
		}
		got = append(got, at.Test)
	}
	if !slices.Equal(got, want) {
		t.Errorf("Tab reaches the controls %q, want all in the order of the page: %q", got, want)
	}
}
