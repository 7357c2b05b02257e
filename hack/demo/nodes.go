package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addNodes creates two Nodes without a kubelet. The cloud has servers of their names,
// one of them on a host with a GPU.
func (s *stack) addNodes(ctx context.Context) error {
	if err := s.on.addServers(ctx, s); err != nil {
		return err
	}
	for _, name := range []string{"worker-1", "worker-2"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := s.api.Client.Create(ctx, node); err != nil {
			return fmt.Errorf("creating Node %q: %w", name, err)
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Demo"}}
		if err := s.api.Client.Status().Update(ctx, node); err != nil {
			return fmt.Errorf("making Node %q Ready: %w", name, err)
		}
	}
	s.say("created the Nodes worker-1 and worker-2 and the servers of the same names")
	return nil
}
