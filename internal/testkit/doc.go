// Package testkit is the harness of tests that need a manager, an API server or a
// cloud: etcd and kube-apiserver with this project's CRDs, the operator in the
// process of the test, and mock clouds that are served over HTTP. Kubernetes'
// controller manager does not run, so nothing collects garbage and namespaces never
// finish terminating.
//
//	env.go        etcd and kube-apiserver
//	rbac.go       the operator's namespace, and a user with its rights
//	manager.go    the operator
//	process.go    the operator as a process of its own, which can be killed
//	process_*.go  what ends the process together with the test, by platform
//	webhook.go    the webhooks: certificate and registration
//	claims.go     the admission policy that creates VMs with their claim
//	cloud.go      mock clouds
//	objects.go    objects for tests
//	t.go          a test with Gomega's assertions
//	condition.go  matchers of conditions
//	writes.go     records the changes that a client requests
//	audit.go      the API server's log of one user's requests
//	kubectl.go    kubectl and kubeconfig files
//	buffer.go     a buffer for several goroutines
package testkit
