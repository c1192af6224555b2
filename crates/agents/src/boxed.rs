//! Futures in boxes.

use futures_util::future::BoxFuture;

/// Boxes a future without copying it.
///
/// `FutureExt::boxed` builds the future first and then copies all of it to the box; for a run these
/// are thousands of bytes. This allocates the box first and builds the future in it.
#[inline]
pub(crate) fn boxed<'a, F>(make: impl FnOnce() -> F) -> BoxFuture<'a, F::Output>
where
    F: Future + Send + 'a,
{
    let place = Box::<F>::new_uninit();
    let future: Box<F> = Box::write(place, make());
    Box::into_pin(future)
}
