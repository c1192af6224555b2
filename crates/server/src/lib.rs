//! HTTP, SSE, authentication, tenants and metrics: the composition root of Loomline.
