package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// OperatorUser is the name of the user of OperatorConfig.
func OperatorUser(namespace string) string {
	return "system:serviceaccount:" + namespace + ":controller-manager"
}

// OperatorConfig creates the operator's namespace and returns the configuration of a
// user with the rights of config/rbac/role.yaml there and no others.
func (e *Env) OperatorConfig(ctx context.Context, namespace string) (*rest.Config, error) {
	account := OperatorUser(namespace)
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account}}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
	roles, err := operatorRoles()
	if err != nil {
		return nil, err
	}
	for _, role := range roles {
		reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.GetKind(), Name: role.GetName()}
		meta := metav1.ObjectMeta{Name: role.GetName()}
		if role.GetKind() == "ClusterRole" {
			objects = append(objects, role, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: reference, Subjects: subjects})
			continue
		}
		role.SetNamespace(namespace)
		meta.Namespace = namespace
		objects = append(objects, role, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: reference, Subjects: subjects})
	}
	for _, object := range objects {
		if err := e.Client.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("creating %T %q: %w", object, object.GetName(), err)
		}
	}
	// A certificate, for the audit policy selects by the user who authenticated.
	user, err := e.server.AddUser(envtest.User{Name: account}, e.Config)
	if err != nil {
		return nil, fmt.Errorf("making a certificate of %s: %w", account, err)
	}
	return user.Config(), nil
}

func operatorRoles() ([]*unstructured.Unstructured, error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "config", "rbac", "role.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the operator's roles: %w", err)
	}
	var roles []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text)); ; {
		role := &unstructured.Unstructured{}
		switch err := decoder.Decode(role); {
		case errors.Is(err, io.EOF):
			return roles, nil
		case err != nil:
			return nil, fmt.Errorf("decoding the operator's roles: %w", err)
		}
		if len(role.Object) > 0 {
			roles = append(roles, role)
		}
	}
}
