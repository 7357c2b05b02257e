package why

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/plugin"
)

// show prints a report in words, one line for each object.
func show(out io.Writer, r *report) error {
	var text strings.Builder
	for i := range r.Chain {
		before := ""
		if i > 0 && !r.Chain[i].done() {
			before = "→ " // else it is no cause, such as the Cloud
		}
		text.WriteString(before + sentence(&r.Chain[i]) + "\n")
	}
	if r.Cloud != nil {
		text.WriteString(queue(r.Cloud, r.Chain[0].Namespace) + "\n")
	}
	if r.Claim != nil {
		text.WriteString(claimed(r.Claim) + "\n")
	}
	if len(r.Steps) > 0 {
		text.WriteString(lastStep(r.Steps[len(r.Steps)-1]) + "\n")
	} else if r.Cloud != nil && len(r.Notes) == 0 {
		text.WriteString("Last step: none since the operator started\n")
	}
	for _, note := range r.Notes {
		text.WriteString("Note: " + oneLine(note) + "\n")
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// sentence returns an entry in words.
func sentence(l *entry) string {
	who := describe(key{l.Kind, l.Namespace, l.Name})
	text := ""
	switch l.State {
	case stateReady:
		text = who + " is Ready"
	case stateNotReady:
		text = who + " is not Ready"
		if l.Stalled {
			text += " until somebody acts"
		}
	case stateExists:
		return who + " exists"
	case stateMissing:
		return who + " does not exist"
	case stateUnreadable:
		return who + " cannot be read: " + oneLine(l.Message)
	default:
		text = who + " has no conditions yet: the operator has not reconciled it, or does not run"
	}
	if l.Since != nil {
		text += " since " + l.Since.Format(time.RFC3339)
	}
	if l.Reason != "" {
		text += ": " + l.Reason
	}
	if l.Message != "" {
		text += " — " + oneLine(l.Message)
	}
	for _, note := range l.Notes {
		text += "; " + oneLine(note)
	}
	return text
}

// queue returns what waits for a Cloud in words, with the part of a namespace.
func queue(c *wire.Cloud, namespace string) string {
	parts := []string{"brake off"}
	if c.Braked {
		parts[0] = "brake on"
	}
	if c.Unavailable != "" {
		parts = append(parts, "unavailable: "+c.Unavailable)
	}
	if c.Listing != nil {
		parts = append(parts, fmt.Sprintf("%d servers at the last listing, of %s", c.Listing.Servers, c.Listing.Begun.Format(time.RFC3339)))
	}
	for i := range c.Workers {
		parts = append(parts, workers(&c.Workers[i], namespace))
	}
	if l := c.Limiter; l != nil {
		parts = append(parts, fmt.Sprintf("%d requests under way and %d waiting (at most %d under way, %g a second)", l.InFlight, l.Waiting, l.MaxInFlight, l.RequestsPerSecond))
		for _, flow := range l.Flows {
			if flow.Namespace == namespace && flow.RetryAt != nil {
				parts = append(parts, fmt.Sprintf("requests of namespace %s come back until %s, because of the limits", namespace, flow.RetryAt.Format(time.RFC3339)))
			}
		}
	}
	return "Cloud " + c.Cloud + " in the operator: " + strings.Join(parts, "; ")
}

func workers(w *wire.Workers, namespace string) string {
	own := 0
	for _, of := range w.Namespaces {
		if of.Namespace == namespace {
			own = of.Waiting
		}
	}
	if w.Waiting == 0 {
		return fmt.Sprintf("%s: none wait", w.Controller)
	}
	text := fmt.Sprintf("%s: %d wait", w.Controller, w.Waiting)
	if namespace != "" {
		text = fmt.Sprintf("%s: %d of namespace %s wait, of %d", w.Controller, own, namespace, w.Waiting)
	}
	return text + fmt.Sprintf(" (at most %d at a time, %d of a namespace)", w.PerCloud, w.PerNamespace)
}

func claimed(c *claim) string {
	who := "Claim of " + describe(key{c.Kind, c.Namespace, c.Name}) + ": "
	if !c.Claimed && c.ID == "" {
		return who + "none, so no create was sent"
	}
	if !c.Claimed {
		return who + "none; it observes id " + c.ID
	}
	var text strings.Builder
	text.WriteString(who + "stored, so something of it may be in the cloud")
	if c.ClaimedName != "" {
		fmt.Fprintf(&text, "; name %q", c.ClaimedName)
	}
	if c.Cloud != "" {
		text.WriteString("; Cloud " + oneLine(c.Cloud))
	}
	if c.ID != "" {
		text.WriteString("; id " + oneLine(c.ID))
	}
	return text.String()
}

func lastStep(s wire.Step) string {
	took := time.Duration(s.DurationSeconds * float64(time.Second)).Round(time.Millisecond)
	text := fmt.Sprintf("Last step: %s at %s, took %s", s.Step, s.Time.Format(time.RFC3339), took)
	if s.Reason == "" && s.Message == "" {
		return text + ": succeeded"
	}
	return text + ": " + cmp.Or(s.Reason, "failed") + " — " + oneLine(s.Message)
}

// oneLine keeps a text on its line, and plain.
func oneLine(text string) string { return plugin.Plain(strings.Join(strings.Fields(text), " ")) }
