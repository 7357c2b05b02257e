package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	operatorNamespace = "private-cloud-operator-system"
	operatorAccount   = "private-cloud-operator-controller-manager"
)

// installed are the kinds of config/default that the demo creates. The CRDs exist
// already, and the operator runs outside of the cluster.
var installed = []string{"Namespace", "ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}

// install creates the service account and the RBAC of the operator as make deploy
// does, and nothing more, so that the demo fails if permissions are missing.
func (s *stack) install(ctx context.Context) error {
	objects, err := s.kustomize(ctx, "config/default")
	if err != nil {
		return err
	}
	for _, object := range objects {
		if !slices.Contains(installed, object.GetKind()) {
			continue
		}
		if err := s.api.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %s %s of config/default: %w", object.GetKind(), object.GetName(), err)
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: operatorAccount}}
	// The token is not renewed, so that it has to outlive the demo.
	days := int64((30 * 24 * time.Hour).Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &days}}
	if err := s.api.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("requesting a token for the operator's ServiceAccount: %w", err)
	}
	config, err := clientcmd.LoadFromFile(s.kubeconfig())
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	}
	if err := clientcmd.WriteToFile(*config, s.operatorKubeconfig()); err != nil {
		return fmt.Errorf("writing the operator's kubeconfig: %w", err)
	}
	return nil
}

// shortenIntervals sets a short poll interval, which shows changes sooner, and a
// short settle time, because no other operator has sent creates to this cloud.
func (s *stack) shortenIntervals(ctx context.Context) error {
	_, err := s.kubectl(ctx, "patch", "cloud", pcapi.DefaultCloudName, "--type=merge", "--patch", `{"spec":{"pollInterval":"2s","settleTime":"1s"}}`)
	return err
}

// kustomize returns the objects of the kustomization in a folder below root.
func (s *stack) kustomize(ctx context.Context, folder string) ([]*unstructured.Unstructured, error) {
	manifests, err := s.kubectl(ctx, "kustomize", folder)
	if err != nil {
		return nil, err
	}
	return decode(manifests)
}

// decode reads a stream of YAML documents.
func decode(manifests []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for stream := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		object := &unstructured.Unstructured{}
		switch err := stream.Decode(object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// kubectl runs kubectl as the administrator of the cluster in the root folder and
// returns its output.
func (s *stack) kubectl(ctx context.Context, args ...string) ([]byte, error) {
	output, _, err := s.kubectlOutputs(ctx, args...)
	return output, err
}

// kubectlOutputs is kubectl that also returns what was written to stderr, which has the
// warnings.
func (s *stack) kubectlOutputs(ctx context.Context, args ...string) (output, warnings []byte, err error) {
	cmd := exec.CommandContext(ctx, s.kubectlPath(), args...)
	cmd.Dir = s.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig(), "KUBECACHEDIR="+filepath.Join(s.scratch, "kubectl"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = processGroup()
	if err := cmd.Run(); err != nil {
		return nil, nil, fmt.Errorf("kubectl %s: %w\n%s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), stderr.Bytes(), nil
}
