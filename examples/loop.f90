! A loop of one's own in Fortran: 100 neurons learn y = tanh(x_1) by stochastic gradient descent on fresh samples.
!
!   flags=$(PKG_CONFIG_PATH=$(dirname "$(python -m mfcore --cmakedir)")/lib/pkgconfig pkg-config --cflags --libs mfcore-c)
!   gfortran examples/loop.f90 -o loop $flags && ./loop
include "mfcore/mfcore.f90"

program loop
   use, intrinsic :: iso_c_binding, only: c_double, c_int64_t, c_null_ptr, c_ptr
   use mfcore
   implicit none
   integer(c_int64_t), parameter :: neurons = 100, d = 5, batch = 20
   integer, parameter :: steps = 2000
   real(c_double) :: theta(1 + d, neurons), x(d, batch), y(batch), f(batch), gradient(1 + d)
   type(c_ptr) :: network = c_null_ptr
   integer :: k

   call random_number(theta)
   theta = 2*theta - 1
   call expect(mfcore_create("tanh", mfcore_trained, mfcore_absent, neurons, d, theta, network)) ! columns [a, w]
   do k = 1, steps
      call draw()
      call expect(mfcore_step(network, batch, x, y, h=0.2_c_double, threads=1))
   end do

   call draw()
   call expect(mfcore_predict(network, batch, x, f, threads=1))
   call expect(mfcore_theta(network, theta))
   call expect(mfcore_potentials(network, 1_c_int64_t, theta, batch, x, y, gradient=gradient, threads=1))
   print "(3a, f7.4, a, i0, a)", "mfcore ", mfcore_version(), ": risk", sum((y - f)**2)/batch, " after ", steps, " steps"
   print "(a, es9.2)", "largest entry of the gradient at the first neuron:", maxval(abs(gradient))

   if (mfcore_step(network, batch, x, y, h=-1.0_c_double, threads=1) == mfcore_invalid) print "(a)", mfcore_message()
   call mfcore_free(network)

contains

   subroutine draw()
      call random_number(x)
      x = 2*x - 1
      y = tanh(x(1, :))
   end subroutine

   !> Stop the program with what mfcore says, unless the code is that of success.
   subroutine expect(code)
      integer, intent(in) :: code
      if (code == mfcore_ok) return
      error stop "mfcore: "//mfcore_message()
   end subroutine
end program loop
