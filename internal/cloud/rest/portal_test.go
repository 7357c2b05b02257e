package rest

import (
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

// A portal in front of the cloud answers 200 with a page. No call takes it for the
// cloud's answer, whatever its media type says.
func TestPageOfHTMLIsNoAnswer(t *testing.T) {
	t.Parallel()
	const page = "\uFEFF\n<!DOCTYPE html><html><body>log in</body></html>"
	for name, media := range map[string]string{
		"an invalid parameter":  "text/html; charset",
		"no media type":         "",
		"two media types":       "text/html, text/html",
		"a type of plain text":  "text/plain; charset=utf-8",
		"a type of any content": "application/octet-stream",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, body := range []string{page, "<HTML>log in</HTML>"} {
				c := serve(t, answering(reply{status: 200, header: map[string]string{"Content-Type": media}, body: body})).withCapabilities(allCapabilities()...)
				wantOutcome(t, c.CheckName(t.Context(), cloud.Name{Name: "web"}), outcome{Kind: cloud.Unreadable})
				_, err := c.DeleteServer(t.Context(), "s1")
				wantOutcome(t, err, outcome{Kind: cloud.Unreadable, Uncertain: true})
				wantOutcome(t, c.DeleteNetwork(t.Context(), "n1"), outcome{Kind: cloud.Unreadable, Uncertain: true})
			}
		})
	}
}
