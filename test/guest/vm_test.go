package guest_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/testkit"
)

const (
	uid = "0b5c2b3e-0000-4000-8000-000000000001"
	// script is user data that leaves a file.
	script = "#!/bin/sh\nid -un >/run/user-data-ran\n"
	// createTime only ends what hangs.
	createTime = time.Minute
)

// vm returns a VM in whose guest a key can log in.
func vm(name, key string, change ...func(*pcapi.VM)) *pcapi.VM {
	cpu, memory := pcapi.VMCores(intstr.FromInt32(1)), pcapi.VMMemory(intstr.FromString("1Gi"))
	return testkit.VM("team", name, append([]func(*pcapi.VM){func(vm *pcapi.VM) {
		vm.UID = types.UID(uid)
		vm.Spec.CPU, vm.Spec.Memory = &cpu, &memory
		vm.Spec.Bootstrap = &pcapi.VMBootstrap{CloudInit: pcapi.VMCloudInit{SSHAuthorizedKeys: []pcapi.SSHAuthorizedKey{pcapi.SSHAuthorizedKey(key)}}}
	}}, change...)...)
}

// dial returns a client of a Cloud, which is closed with the test.
func dial(t *testing.T, by clouds.Dialer, c *pcapi.Cloud, credentials map[string]string) cloud.Client {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: c.Name}, Data: map[string][]byte{}}
	for key, value := range credentials {
		secret.Data[key] = []byte(value)
	}
	c.Spec.InsecureAllowHTTP = true
	client, err := by.Dial(c, secret)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { client.Close(ctx) })
	return client
}

// create creates the server of a VM, by the request that the controller makes, and waits for it.
func create(t *testing.T, c cloud.Client, vm *pcapi.VM, data string, interfaces ...cloud.Attachment) cloud.Server {
	t.Helper()
	capabilities, err := c.Capabilities(t.Context())
	if err != nil {
		t.Fatalf("Capabilities: %v", err)
	}
	req := cloud.CreateServer{Name: vm.Spec.VMName, IdempotencyKey: string(vm.UID), First: true}
	field.Create(vm, field.Context{Capabilities: capabilities, Interfaces: interfaces, UserData: cloud.UserData(data)}, &req)
	result, err := c.CreateServer(t.Context(), req)
	if err != nil {
		t.Fatalf("CreateServer: %v", err)
	}
	if result.Server.ID != "" {
		return result.Server
	}
	wait := testkit.NewT(t, createTime, pollTime)
	var operation cloud.Operation
	wait.Eventually(func() (done bool, err error) {
		operation, err = c.GetOperation(t.Context(), result.Operation)
		return operation.Done, err
	}).Should(BeTrue())
	if operation.Err != nil {
		t.Fatalf("create %s: %v", vm.Name, operation.Err)
	}
	server, err := c.GetServer(t.Context(), operation.ServerID)
	if err != nil {
		t.Fatalf("GetServer: %v", err)
	}
	return server
}
