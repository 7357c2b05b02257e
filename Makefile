VERSION ?= 0.1.0
IMAGE_TAG_BASE ?= ghcr.io/privatecloud/private-cloud-operator
IMG ?= $(IMAGE_TAG_BASE):v$(VERSION)
MOCK_IMG ?= $(IMAGE_TAG_BASE)-mock-cloud:v$(VERSION)
METRICS_API_IMG ?= $(IMAGE_TAG_BASE)-metrics-api:v$(VERSION)
BUNDLE_IMG ?= $(IMAGE_TAG_BASE)-bundle:v$(VERSION)
SCORECARD_IMG ?= $(IMAGE_TAG_BASE)-scorecard:v$(VERSION)
CATALOG_IMG ?= $(IMAGE_TAG_BASE)-catalog:v$(VERSION)
BUNDLE_DIR ?= bundle
CATALOG_DIR ?= catalog
CHART_DIR ?= charts/private-cloud-operator
IMAGES_DIR ?= bin/images
# The digests of images, by which bundle and catalog refer to them: make image-digests. With USE_IMAGE_DIGESTS=true, an image
# whose digest is not recorded is an error; otherwise it is referred to by its tag.
IMAGE_DIGESTS ?= config/manifests/image-digests.txt
USE_IMAGE_DIGESTS ?= false
CHANNELS ?= candidate,fast,stable
DEFAULT_CHANNEL ?= stable

# The namespace where the operator of make run reads the Secrets of Clouds.
NAMESPACE ?= private-cloud-operator-system

# The kustomization that make deploy applies.
OVERLAY ?= config/default
# Replaces the images of config/, which are those of a release.
WITH_IMAGES = sed -E 's|(image: )ghcr.io/privatecloud/private-cloud-operator:.*|\1$(IMG)|; s|(image: )ghcr.io/privatecloud/private-cloud-operator-mock-cloud:.*|\1$(MOCK_IMG)|; s|(image: )ghcr.io/privatecloud/private-cloud-operator-metrics-api:.*|\1$(METRICS_API_IMG)|'

CONTAINER_TOOL ?= docker
KIND_CLUSTER ?= kind
PLATFORMS ?= linux/amd64,linux/arm64

ACTIONLINT := bin/actionlint
CONTROLLER_GEN := bin/controller-gen
CRD_REF_DOCS := bin/crd-ref-docs
GOLANGCI_LINT := bin/golangci-lint
KUSTOMIZE := bin/kustomize
OPERATOR_SDK := bin/operator-sdk
GOVULNCHECK := bin/govulncheck
TOOLS := $(ACTIONLINT) $(CONTROLLER_GEN) $(CRD_REF_DOCS) $(GOLANGCI_LINT) $(GOVULNCHECK) $(KUSTOMIZE) $(OPERATOR_SDK) bin/opm bin/image bin/indexdb bin/setup-envtest bin/helm
KUBECTL ?= $(or $(shell command -v kubectl),bin/k8s/current/kubectl)

GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=v$(VERSION)"
# More flags for go test: -race (needs a C compiler), -count=1, -run, -v.
GOTESTFLAGS ?=
# Bounds each test binary. No run takes nearly as long: it is to end tests that hang, not tests on a slow machine.
TEST_TIMEOUT ?= 4h
# How long each fuzz target runs, and how many at a time.
FUZZTIME ?= 30s
FUZZ_JOBS ?= 2

# The cloud of make demo: mock or vsphere.
CLOUD ?= mock

# All products and tests are built by the Go version of the line toolchain in go.mod, whichever is installed, so that the same
# commit gives the same bytes. Go downloads it like a module and checks it against the checksum database.
export GOTOOLCHAIN := $(shell sed -n 's/^toolchain //p' go.mod)

# Tests and linters build with the flags of GO_BUILD, whose results depend neither on the folder nor on a C library. So every package
# is compiled once, for all of them and for all clones. Without symbols, which no test reads, a test binary is linked in three quarters
# of the time.
override GOFLAGS := $(GOFLAGS) -trimpath -ldflags=-s
CGO_ENABLED := $(if $(findstring -race,$(GOTESTFLAGS) $(GOFLAGS)),1,0)
export GOFLAGS CGO_ENABLED

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

##@ Demo and tests

.PHONY: demo
demo: bin/manager $(if $(filter vsphere,$(CLOUD)),bin/vcsim,bin/mockcloud) bin/demo ## Run API server, mock cloud (CLOUD=vsphere: a simulated vCenter) and operator with samples of all kinds until Ctrl-C (ONCE=1: check the samples and exit).
	@assets=$$(hack/kube-assets.sh); KUBEBUILDER_ASSETS=$$assets exec bin/demo --cloud='$(CLOUD)' $(if $(filter-out 0,$(ONCE)),--once)

# Packages with the longest tests. They begin first, so that none of them is left at the end while a processor has nothing to do, and
# in this order, so that those two of them whose operators need the most processor time do not run at once.
LONGEST := ./test/behaviour ./internal/cloud/vsphere ./internal/setup ./test/vsphere

.PHONY: test
test: assets ## Run the tests: unit, API server, conformance and a sample of the faults. Does not build the linters.
	@go -C hack/image test -timeout $(TEST_TIMEOUT) $(GOTESTFLAGS) ./...
	@KUBEBUILDER_ASSETS=$$(hack/kube-assets.sh) go test -timeout $(TEST_TIMEOUT) $(GOTESTFLAGS) $(LONGEST) $$(go list ./... | grep -vE '/test/(alerts|faults|e2e|guest|openstack)$$')
	@$(MAKE) --no-print-directory test-faults FAULTS=$(or $(FAULTS),sample)

##@ Checks

.PHONY: verify
verify: $(ACTIONLINT) $(CONTROLLER_GEN) $(CRD_REF_DOCS) $(GOLANGCI_LINT) $(GOVULNCHECK) $(KUSTOMIZE) $(OPERATOR_SDK) bin/indexdb bin/opm ## Check generated files, formatting, linters, workflows, images, known vulnerabilities and go.mod.
	@MAKE='$(MAKE)' hack/verify.sh

.PHONY: vulncheck
vulncheck: $(GOVULNCHECK) bin/indexdb ## Check that the released binaries reach no known vulnerability (VULNDB=https://vuln.go.dev: by the newest data).
	@VULNDB='$(VULNDB)' hack/vulncheck.sh

# In a run of its own, because it uses all processors. -count=1 because it builds the operator that it tests, which the
# test cache does not know.
# GOGC is for its API server, which takes a third of the processors.
.PHONY: test-faults
test-faults: assets ## Kill managers between any two effects, interrupt calls, send hostile answers, and check the result: about ten minutes. FAULTS=sample: a third of the cases and of their kills, part of make test. FAULTS=full: all combinations.
	@GOGC=400 FAULTS='$(FAULTS)' KUBEBUILDER_ASSETS=$$(hack/kube-assets.sh) go test -count=1 -timeout $(TEST_TIMEOUT) $(GOTESTFLAGS) ./test/faults

.PHONY: simulate
simulate: ## Simulate the operator until OPS operations are done (200000), from SEED on (1), on all clouds or that of PROFILE: part of make test with 20,000.
	@go test -count=1 -v -timeout $(TEST_TIMEOUT) $(GOTESTFLAGS) -run '^TestRandomRuns$$' ./test/simulation -args -operations $(or $(OPS),200000) -seed $(or $(SEED),1) -profile '$(PROFILE)' -progress 10s

.PHONY: search
search: ## Simulate all runs of small scopes with at most DEVIATIONS (2) from the usual run: part of make test with one, for a VM.
	@go test -count=1 -v -timeout $(TEST_TIMEOUT) $(GOTESTFLAGS) -run '^TestSearchOfSmallScopes$$' ./test/simulation -args -groups -deviations $(or $(DEVIATIONS),2)

.PHONY: mutants
mutants: ## Put bugs into the code, one at a time, and show which the simulation catches (MUTANT=lease: those with this in the name; CORPUS_ONLY=1: replay the recorded traces only; RECORD=1: record those that lack).
	@go run ./test/simulation/mutants -operations $(or $(OPS),200000) $(if $(CORPUS_ONLY),-corpus-only) $(if $(RECORD),-record) '$(MUTANT)'

.PHONY: test-page
test-page: bin/mockcloud ## Operate the page of the mock cloud in a headless Chromium (with CI=true: install Debian's): about 15 seconds.
	@test/page/run.sh go test -count=1 -parallel 4 -timeout $(TEST_TIMEOUT) $(GOTESTFLAGS) ./...

# A run that is interrupted leaves nothing running: the services end with the script.
.PHONY: test-openstack
test-openstack: assets ## Install an OpenStack into OPENSTACK_DIR (Debian 12, root; nine minutes, once), run the conformance suite and the operator against it, kill managers, and stop it: 18 minutes. GUEST=1: boot a guest instead, and log in to it.
ifeq ($(GUEST),)
	@KUBEBUILDER_ASSETS=$$(hack/kube-assets.sh) hack/openstack/run.sh go test -count=1 -timeout $(TEST_TIMEOUT) $(GOTESTFLAGS) ./test/openstack
else
	@# What go needs is downloaded before: the network of the guests is not that of the machine.
	@go test -c -o /dev/null ./test/openstack
	@image=$$(realpath "$${GUEST_IMAGE:-$$(hack/guest/image.sh)}") && \
	  GUEST=1 GUEST_IMAGE=$$image KUBEBUILDER_ASSETS=$$(hack/kube-assets.sh) hack/openstack/run.sh \
	  go test -count=1 -v -run '^TestGuest$$' -timeout $(TEST_TIMEOUT) $(GOTESTFLAGS) ./test/openstack
endif

.PHONY: test-guest
test-guest: ## Boot guests with what the operator sends to each type of cloud, and log in to them (Debian 12, root; makes an image once, in three minutes): three minutes.
	@image=$$(hack/guest/image.sh) && GUEST_IMAGE=$$image nice -n 10 go test -count=1 -timeout $(TEST_TIMEOUT) $(GOTESTFLAGS) ./test/guest

.PHONY: test-alerts
test-alerts: assets ## Scrape the operator with a real Prometheus while clouds fail: every alert fires and clears. Needs Prometheus; two minutes.
	@hack/prometheus.sh
	@KUBEBUILDER_ASSETS=$$(hack/kube-assets.sh) go test -timeout $(TEST_TIMEOUT) $(GOTESTFLAGS) ./test/alerts

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME, FUZZ_JOBS at a time (FUZZ=Retry: those with this in the name). Failing inputs are kept in testdata/fuzz.
	@FUZZTIME='$(FUZZTIME)' FUZZ_JOBS='$(FUZZ_JOBS)' hack/fuzz.sh $(FUZZ)

.PHONY: test-e2e
test-e2e: ## Install, upgrade and remove the operator in every supported way on a real cluster: cluster-up, or E2E_KUBECONFIG with REGISTRY. E2E=short: without catalogs, OLM v1 and autoscaling.
	@E2E='$(E2E)' VERSION='$(VERSION)' test/e2e/run.sh -timeout $(TEST_TIMEOUT) $(GOTESTFLAGS) -ginkgo.timeout=$(TEST_TIMEOUT)

.PHONY: test-long
test-long: ## Run the long versions of the tests of .ci/run, and test-openstack with a guest: about five hours.
	@$(MAKE) --no-print-directory test-faults FAULTS=full
	@PLAN=full PLAN_SEED=$$RANDOM KUBEBUILDER_ASSETS=$$(hack/kube-assets.sh) go test -count=1 -v -timeout $(TEST_TIMEOUT) $(GOTESTFLAGS) -run '^TestPlannedChangesAreThoseInTheCloud$$' ./test/plugin
	@$(MAKE) --no-print-directory fuzz
	@$(MAKE) --no-print-directory test-e2e
	@OPENSTACK_VMS=60 OPENSTACK_RIGHT=all $(MAKE) --no-print-directory test-openstack
	@$(MAKE) --no-print-directory test-openstack GUEST=1

##@ Development

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN { FS = ":.*##"; print "make TARGET [VARIABLE=value]" } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-zA-Z_-]+:.*##/ { printf "  %-16s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: generate manifests bin/manager bin/metrics-api bin/mockcloud bin/kubectl-privatecloud ## Build the operator, the metrics API, the mock cloud and the kubectl plugin into bin/.

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Generate DeepCopy methods.
	@$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...

# What Go decodes as a time, after one that works, for the message. The format date-time accepts more: t and z, any offset, and lists.
TIME_PATTERN := ^(2026-01-31T08:00:00Z|([1-8][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([1-8][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[1357][26])00)-02-29)T([01][0-9]|2[0-3])(:[0-5][0-9]){2}(\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))$$

.PHONY: manifests
manifests: $(CONTROLLER_GEN) ## Generate the CRDs, the ClusterRole and the webhook of the operator.
	@$(CONTROLLER_GEN) rbac:roleName=manager-role crd webhook paths=./api/... paths=./internal/... output:crd:artifacts:config=config/crd/bases
	@sed -i -E '/^ *format: date-time$$/{N;/\n *pattern: /!s/\n( *)/\n\1pattern: $(TIME_PATTERN)&/;s/^[^\n]*\n//}' config/crd/bases/*.yaml

.PHONY: api-reference
api-reference: $(CRD_REF_DOCS) ## Generate docs/reference/api.md from the types of the API.
	@$(CRD_REF_DOCS) --source-path=api/v1alpha1 --config=hack/api-reference/config.yaml --templates-dir=hack/api-reference \
		--renderer=markdown --output-path=docs/reference/api.md --log-level=ERROR

.PHONY: plugin-docs
plugin-docs: ## Generate the pages of the commands of the kubectl plugin.
	@go run ./hack/plugin-docs docs/kubectl-privatecloud

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the code and apply the fixes that linters propose.
	@$(GOLANGCI_LINT) fmt
	@$(GOLANGCI_LINT) run --fix >/dev/null || true

.PHONY: vet
vet: ## Run go vet.
	go vet ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters.
	@$(GOLANGCI_LINT) run
	@cd hack/image && $(CURDIR)/$(GOLANGCI_LINT) run
	@cd test/page && $(CURDIR)/$(GOLANGCI_LINT) run

.PHONY: bench
bench: bin/manager bin/mockcloud bin/vcsim assets ## Measure the cost of VMs and print a table (docs/development/benchmarks.md).
	@KUBEBUILDER_ASSETS=$$(hack/kube-assets.sh) go run ./test/bench $(ARGS)

.PHONY: bench-costs
bench-costs: ## Measure what one object costs beside 1,000, 10,000 and 50,000 others, with Go benchmarks (docs/development/benchmarks.md).
	@go test -run '^$$' -bench Cost -benchtime $(or $(BENCHTIME),100x) ./internal/...

.PHONY: bench-scale
bench-scale: bin/manager bin/mockcloud assets ## Measure the operator with 50,000 VMs on one Cloud, at rest and while it starts, in about half an hour (docs/development/benchmarks.md).
	@KUBEBUILDER_ASSETS=$$(hack/kube-assets.sh) go run ./test/bench --parts=scale $(ARGS)

# What cannot be built is named in the table.
.PHONY: bench-peers
bench-peers: bin/manager bin/mockcloud bin/seedcontroller assets ## Build OpenTofu and a plain controller, let them and the operator do the same work, and print a table (docs/development/benchmarks.md).
	@hack/tool.sh terraform-provider-restapi && hack/tool.sh tofu || true
	@KUBEBUILDER_ASSETS=$$(hack/kube-assets.sh) go run ./test/bench --parts=peers $(ARGS)

.PHONY: screenshot
screenshot: bin/mockcloud ## Take docs/images/mock-cloud.png, a picture of the page of the mock cloud, in a headless Chromium.
	@test/page/run.sh go run ./screenshot $(CURDIR)/docs/images/mock-cloud.png

.PHONY: run
run: generate manifests bin/manager ## Run the operator against the cluster of KUBECONFIG (NAMESPACE=…, ARGS="--default-cloud-endpoint=…").
	@exec bin/manager --namespace=$(NAMESPACE) $(ARGS)

##@ The cluster for tests (docs/development/testing-cluster.md)

.PHONY: cluster-up
cluster-up: ## Start a one-node Kubernetes with OLM and a registry in Linux namespaces of its own; needs Linux and root.
	@test/cluster/up.sh

.PHONY: cluster-down
cluster-down: ## Stop it (PURGE=1: also delete its state).
	@PURGE=$(PURGE) test/cluster/down.sh

##@ Deployment to the cluster of KUBECONFIG

.PHONY: install
install: manifests $(KUSTOMIZE) ## Install the CRDs.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) apply --server-side -f -

.PHONY: uninstall
uninstall: $(KUSTOMIZE) ## Remove the CRDs and all their objects.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: manifests $(KUSTOMIZE) ## Install CRDs and operator with the image IMG (OVERLAY=config/overlays/development: also a mock cloud with MOCK_IMG).
	$(KUSTOMIZE) build $(OVERLAY) | $(WITH_IMAGES) | $(KUBECTL) apply --server-side -f -

.PHONY: drain
drain: bin/kubectl-privatecloud ## Show what kubectl privatecloud drain would delete before the operator is removed (POLICY=orphan: keep servers; ARGS=--yes: do it; docs/install.md).
	@exec bin/kubectl-privatecloud drain --policy='$(or $(POLICY),delete)' $(ARGS)

.PHONY: undeploy
undeploy: $(KUSTOMIZE) ## Remove operator and CRDs. Before, kubectl privatecloud drain, while the operator can delete the servers (docs/install.md).
	$(KUSTOMIZE) build $(OVERLAY) | $(KUBECTL) delete --ignore-not-found -f -

##@ Images and the OLM bundle

.PHONY: docker-build
docker-build: ## Build IMG, METRICS_API_IMG, MOCK_IMG and SCORECARD_IMG with CONTAINER_TOOL.
	$(CONTAINER_TOOL) build --build-arg VERSION=$(VERSION) -t $(IMG) .
	$(CONTAINER_TOOL) build --build-arg VERSION=$(VERSION) -f cmd/metrics-api/Dockerfile -t $(METRICS_API_IMG) .
	$(CONTAINER_TOOL) build --build-arg VERSION=$(VERSION) -f mockcloud/Dockerfile -t $(MOCK_IMG) .
	$(CONTAINER_TOOL) build --build-arg VERSION=$(VERSION) -f test/scorecard/Dockerfile -t $(SCORECARD_IMG) .

.PHONY: images
images: bin/image ## Build these images without a container engine, as OCI layouts in IMAGES_DIR.
	@VERSION='$(VERSION)' PLATFORMS='$(PLATFORMS)' hack/images.sh $(IMAGES_DIR)

.PHONY: bundle-image
bundle-image: bin/image ## Build the image of the bundle of BUNDLE_DIR in the same way.
	@PLATFORMS='$(PLATFORMS)' BUNDLE_DIR='$(BUNDLE_DIR)' hack/bundle-image.sh $(IMAGES_DIR)/private-cloud-operator-bundle

.PHONY: image-digests
image-digests: bin/image ## Record the digests of the images of IMAGES_DIR in IMAGE_DIGESTS (FROM=registry: those of the pushed images).
	@VERSION='$(VERSION)' FROM='$(FROM)' hack/image-digests.sh '$(IMAGE_DIGESTS)' $(IMAGES_DIR) $(IMAGE_TAG_BASE)

.PHONY: images-push
images-push: bin/image ## Push the images of IMAGES_DIR as IMAGE_TAG_BASE:vVERSION and so on.
	@VERSION='$(VERSION)' hack/push.sh $(IMAGES_DIR) $(IMAGE_TAG_BASE)

.PHONY: kind-load
kind-load: bin/image ## Build the images for this machine without a container engine, and load them into the kind cluster KIND_CLUSTER.
	@VERSION='$(VERSION)' IMAGE_TAG_BASE='$(IMAGE_TAG_BASE)' hack/kind-load.sh '$(KIND_CLUSTER)'

.PHONY: docker-push
docker-push: ## Push the images of docker-build.
	$(CONTAINER_TOOL) push $(IMG)
	$(CONTAINER_TOOL) push $(METRICS_API_IMG)
	$(CONTAINER_TOOL) push $(MOCK_IMG)
	$(CONTAINER_TOOL) push $(SCORECARD_IMG)

.PHONY: docker-buildx
docker-buildx: ## Build and push the same images for all PLATFORMS.
	$(CONTAINER_TOOL) buildx build --push --platform $(PLATFORMS) --build-arg VERSION=$(VERSION) -t $(IMG) .
	$(CONTAINER_TOOL) buildx build --push --platform $(PLATFORMS) --build-arg VERSION=$(VERSION) -f cmd/metrics-api/Dockerfile -t $(METRICS_API_IMG) .
	$(CONTAINER_TOOL) buildx build --push --platform $(PLATFORMS) --build-arg VERSION=$(VERSION) -f mockcloud/Dockerfile -t $(MOCK_IMG) .
	$(CONTAINER_TOOL) buildx build --push --platform $(PLATFORMS) --build-arg VERSION=$(VERSION) -f test/scorecard/Dockerfile -t $(SCORECARD_IMG) .

.PHONY: bundle
bundle: generate manifests $(KUSTOMIZE) $(OPERATOR_SDK) ## Generate the bundle of VERSION into BUNDLE_DIR and validate it (WEBHOOK=none, NETWORK_POLICY=none: without them).
	@VERSION='$(VERSION)' IMG='$(IMG)' METRICS_API_IMG='$(METRICS_API_IMG)' MOCK_IMG='$(MOCK_IMG)' SCORECARD_IMG='$(SCORECARD_IMG)' \
		IMAGE_DIGESTS='$(IMAGE_DIGESTS)' USE_IMAGE_DIGESTS='$(USE_IMAGE_DIGESTS)' CHANNELS='$(CHANNELS)' DEFAULT_CHANNEL='$(DEFAULT_CHANNEL)' \
		WEBHOOK='$(WEBHOOK)' NETWORK_POLICY='$(NETWORK_POLICY)' hack/bundle.sh $(BUNDLE_DIR)

.PHONY: bundle-build
bundle-build: ## Build the image of the bundle, BUNDLE_IMG.
	$(CONTAINER_TOOL) build -f $(BUNDLE_DIR).Dockerfile -t $(BUNDLE_IMG) $(dir $(BUNDLE_DIR))

.PHONY: bundle-push
bundle-push: ## Push BUNDLE_IMG.
	$(CONTAINER_TOOL) push $(BUNDLE_IMG)

.PHONY: catalog
catalog: bin/opm ## Render the bundle of BUNDLE_DIR into the catalog CATALOG_DIR and validate it.
	@BUNDLE_REPOSITORY='$(IMAGE_TAG_BASE)-bundle' IMAGE_DIGESTS='$(IMAGE_DIGESTS)' USE_IMAGE_DIGESTS='$(USE_IMAGE_DIGESTS)' hack/catalog.sh $(CATALOG_DIR) $(BUNDLE_DIR)

.PHONY: catalog-build
catalog-build: ## Build the image of the catalog, CATALOG_IMG.
	$(CONTAINER_TOOL) build -f catalog.Dockerfile -t $(CATALOG_IMG) .

.PHONY: catalog-push
catalog-push: ## Push CATALOG_IMG.
	$(CONTAINER_TOOL) push $(CATALOG_IMG)

##@ The Helm chart

.PHONY: chart
chart: manifests $(KUSTOMIZE) ## Generate the manifests of the Helm chart CHART_DIR from config/.
	@hack/chart.sh '$(CHART_DIR)'

.PHONY: chart-package
chart-package: chart bin/helm ## Package the chart with VERSION into dist/.
	@bin/helm package '$(CHART_DIR)' --version '$(VERSION)' --app-version '$(VERSION)' --destination dist

##@ Releases (CONTRIBUTING.md)

RELEASE_DIR ?= dist/release
RELEASE = MAKE='$(MAKE)' VERSION='$(VERSION)' PLATFORMS='$(PLATFORMS)' IMAGE_TAG_BASE='$(IMAGE_TAG_BASE)'

.PHONY: release
release: bin/image $(CONTROLLER_GEN) $(KUSTOMIZE) $(OPERATOR_SDK) bin/opm ## Build images, SBOMs, bundle, catalog, chart, kubectl plugin and checksums of VERSION in RELEASE_DIR. Publishes nothing.
	@$(RELEASE) hack/release.sh '$(RELEASE_DIR)'

.PHONY: release-dry-run
release-dry-run: bin/image bin/helm $(CONTROLLER_GEN) $(KUSTOMIZE) $(OPERATOR_SDK) bin/opm ## Build the release twice, compare and check it (REBUILD=1: without the build cache the second time).
	@$(RELEASE) REBUILD='$(REBUILD)' hack/release-dry-run.sh '$(RELEASE_DIR)'

##@ Tools (pinned in hack/tools, built into bin/ when a target needs them)

.PHONY: tools
tools: $(TOOLS) assets ## Build all tools.

.PHONY: assets
assets: ## Download or build etcd, kube-apiserver and kubectl.
	@hack/kube-assets.sh >/dev/null

.PHONY: clean
clean: ## Remove the binaries of the project from bin/ and keep the tools.
	rm -f bin/manager bin/metrics-api bin/mockcloud bin/kubectl-privatecloud bin/kubectl_complete-privatecloud bin/vcsim bin/demo bin/seedcontroller

.PHONY: FORCE

# hack/tool.sh decides whether a tool has the pinned version, not its modification time.
$(TOOLS): FORCE
	@hack/tool.sh $(@F)

bin/manager: FORCE
	@$(GO_BUILD) -o $@ ./cmd

bin/metrics-api: FORCE
	@$(GO_BUILD) -o $@ ./cmd/metrics-api

bin/mockcloud: FORCE
	@$(GO_BUILD) -o $@ ./mockcloud/cmd/mockcloud

bin/kubectl-privatecloud: FORCE
	@$(GO_BUILD) -o $@ ./cmd/kubectl-privatecloud
	@install -m 0755 cmd/kubectl-privatecloud/kubectl_complete-privatecloud bin/

bin/vcsim: FORCE
	@$(GO_BUILD) -o $@ ./internal/cloud/vsphere/vcsim/cmd/vcsim

bin/seedcontroller: FORCE
	@$(GO_BUILD) -o $@ ./test/bench/seedcontroller

bin/demo: FORCE
	@$(GO_BUILD) -o $@ ./hack/demo
