# The operator. Binaries are cross-compiled on the platform of the builder. The same commit gives the same bytes.
FROM --platform=$BUILDPLATFORM golang:1.26.9@sha256:f1f0bcc2c524a3ced375fcb4d1ecb7aa371aa7070e112599aaca45cc02d0101b AS builder
# Of the line toolchain in go.mod.
ENV GOTOOLCHAIN=auto
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=0.0.0
WORKDIR /workspace
COPY go.mod go.sum ./
RUN go mod download
COPY cmd/ cmd/
COPY api/ api/
COPY internal/ internal/
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=v$VERSION" -o manager ./cmd

FROM gcr.io/distroless/static-debian12:nonroot@sha256:afa5c872c891853ca7fcf1f12c3edb23f7eeef36189728842dd51042ff57f7ab
LABEL org.opencontainers.image.title="private-cloud-operator" \
      org.opencontainers.image.source="https://github.com/privatecloud/operator" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=builder /workspace/manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
