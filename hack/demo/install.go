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

	"github.com/privatecloud/operator/api/v1alpha1"
)

const (
	operatorNamespace = "private-cloud-operator-system"
	operatorAccount   = "private-cloud-operator-controller-manager"
)

// installed are the kinds of config/default that the demo makes. The CRDs are
// there already, and the operator is no Deployment here.
var installed = []string{"Namespace", "ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}

// install gives the operator the account and the rights that make deploy would
// give it, and no more: the demo shows that they suffice.
func (s *stack) install(ctx context.Context) error {
	objects, err := s.built(ctx, "config/default")
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
	// Longer than anybody leaves a demo running: nothing here renews it.
	days := int64((30 * 24 * time.Hour).Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &days}}
	if err := s.api.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("asking for a token of the operator's ServiceAccount: %w", err)
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

// hurry has the cloud listed more often than anybody would outside of a demo,
// and waits less for servers of creates that another operator may have sent:
// there was none before this one.
func (s *stack) hurry(ctx context.Context) error {
	_, err := s.kubectl(ctx, "patch", "cloud", v1alpha1.DefaultCloudName, "--type=merge", "--patch", `{"spec":{"pollInterval":"2s","settleTime":"1s"}}`)
	return err
}

// built returns the objects of a kustomization, a folder below root.
func (s *stack) built(ctx context.Context, folder string) ([]*unstructured.Unstructured, error) {
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

// kubectl runs kubectl as the cluster's administrator, in the module's folder.
func (s *stack) kubectl(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, s.kubectlPath(), args...)
	cmd.Dir = s.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig(), "KUBECACHEDIR="+filepath.Join(s.scratch, "kubectl"))
	var output, trouble bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &trouble
	cmd.SysProcAttr = ownGroup()
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("kubectl %s: %w\n%s", args[0], err, bytes.TrimSpace(trouble.Bytes()))
	}
	return output.Bytes(), nil
}
