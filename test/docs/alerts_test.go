package docs_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEachAlertHasAPage compares the alerts with the pages to which they lead.
func TestEachAlertHasAPage(t *testing.T) {
	alerts := matches(t, monitoring+"rules.yaml", `alert: (\w+)`)
	runbooks := matches(t, monitoring+"rules.yaml", `runbook_url: https://github.com/privatecloud/operator/blob/main/(\S+)`)
	var want, folder []string
	for _, alert := range alerts {
		want = append(want, "docs/alerts/"+alert+".md")
	}
	if diff := cmp.Diff(want, runbooks); diff != "" {
		t.Errorf("pages to which the alerts lead (-want +got):\n%s", diff)
	}
	for _, page := range pages(t) {
		if path.Dir(page) == "docs/alerts" {
			folder = append(folder, page)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, folder); diff != "" {
		t.Errorf("pages of alerts (-want +got):\n%s", diff)
	}
	heading := regexp.MustCompile(`(?m)^#+ .*`)
	for _, page := range folder {
		t.Run(page, func(t *testing.T) {
			name := strings.TrimSuffix(path.Base(page), ".md")
			headings := heading.FindAllString(withoutCode(read(t, page)), -1)
			if diff := cmp.Diff([]string{"# " + name, "## Cause", "## Impact", "## Diagnosis", "## Mitigation"}, headings); diff != "" {
				t.Errorf("headings (-want +got):\n%s", diff)
			}
		})
	}
}
