package brake_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
)

const snapshot = "2026-01-02T03:04:05.000000006Z"

// cloud returns a Cloud whose brake is that of a snapshot, empty for none.
func cloud(name, brakedAt string) *pcapi.Cloud {
	c := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if brakedAt == "" {
		c.Status.Conditions = []metav1.Condition{{Type: pcapi.BrakedCondition, Status: metav1.ConditionFalse, Reason: pcapi.ReleasedReason, Message: "no brake is on"}}
		return c
	}
	c.Status.BrakedSnapshot = brakedAt
	c.Status.Conditions = []metav1.Condition{{
		Type: pcapi.BrakedCondition, Status: metav1.ConditionTrue, Reason: pcapi.ServersVanishedReason,
		LastTransitionTime: metav1.NewTime(time.Now().Add(-5 * time.Minute).Truncate(time.Second)),
		Message:            "snapshot " + brakedAt + " lacks 7 servers that VMs of this cluster record, v01 among them; nothing is created or deleted on this cloud until you have looked and run: kubectl annotate …",
	}}
	return c
}

func TestBrakeShowsClouds(t *testing.T) {
	s := plugintest.Setup{Client: plugintest.NewClient(t, cloud("east", ""), cloud("west", snapshot), &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "new"}})}
	plugintest.Golden(t, "show", []plugintest.Result{
		s.Run(t.Context(), "brake"),
		s.Run(t.Context(), "brake", "east"),
		s.Run(t.Context(), "brake", "west", "-o", "json"),
		s.Run(t.Context(), "brake", "wset"),
		s.Run(t.Context(), "brake", "east", "-o", "yaml"),
		s.Run(t.Context(), "brake", "east", "west"),
	}, snapshot, "<snapshot>")
}
