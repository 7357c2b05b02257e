# The catalog. opm serves it from a cache that is built with the image.
FROM quay.io/operator-framework/opm:v1.63.0 AS builder
COPY catalog /configs
RUN ["/bin/opm", "serve", "/configs", "--cache-dir=/tmp/cache", "--cache-only"]

FROM quay.io/operator-framework/opm:v1.63.0
LABEL operators.operatorframework.io.index.configs.v1=/configs
COPY --from=builder /configs /configs
COPY --from=builder /tmp/cache /tmp/cache
ENTRYPOINT ["/bin/opm"]
CMD ["serve", "/configs", "--cache-dir=/tmp/cache"]
