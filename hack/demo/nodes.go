package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/mockcloud"
)

// addNodes creates two Nodes without a kubelet, one of them on a host with a GPU,
// and their servers in the mock cloud.
func (s *stack) addNodes(ctx context.Context) error {
	for name, host := range map[string]string{"worker-1": "esxi-1", "worker-2": "esxi-2"} {
		if err := s.createServer(ctx, mockcloud.Server{Name: name, Host: host, CPU: 4, Memory: 16}); err != nil {
			return err
		}
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

func (s *stack) createServer(ctx context.Context, server mockcloud.Server) error {
	body, err := json.Marshal(server)
	if err != nil {
		return fmt.Errorf("creating server %q in the mock cloud: %w", server.Name, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.adminURL+"/admin/servers", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("creating server %q in the mock cloud: %w", server.Name, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("creating server %q in the mock cloud: %w", server.Name, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		return fmt.Errorf("the mock cloud answered POST /admin/servers with %s", response.Status)
	}
	return nil
}
