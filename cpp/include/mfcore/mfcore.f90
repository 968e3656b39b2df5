! Interface of mfcore.h for Fortran 2018: include this file, or compile it once with your program.
!
! mfcore.h says what each function does. Indices of matrices are in the reverse order of those there: x(d, samples),
! theta(row, points). Functions return one of the codes, and mfcore_message() says what was wrong. Results that are
! absent are not computed. `theta` of mfcore_create_on and `mass` are not copied: the arrays must have the attribute target,
! and live as long as what was created on them.
module mfcore
   use, intrinsic :: iso_c_binding, only: c_char, c_double, c_f_pointer, c_funptr, c_int, c_int64_t, c_null_char, &
      c_ptr, c_size_t
   implicit none
   private :: c_char, c_double, c_f_pointer, c_funptr, c_int, c_int64_t, c_null_char, c_ptr, c_size_t, text_of

   enum, bind(c) ! what functions return
      enumerator :: mfcore_ok = 0, mfcore_invalid, mfcore_not_finite, mfcore_no_memory, mfcore_failed
   end enum
   enum, bind(c) ! parts of the row of parameters
      enumerator :: mfcore_absent = 0, mfcore_fixed, mfcore_trained
   end enum

   type, bind(c) :: mfcore_axis ! cells along one coordinate of a density
      integer(c_int64_t) :: cells
      type(c_ptr) :: edges ! c_loc of cells + 1 numbers
      real(c_double) :: rate = 1, volume = 0
   end type

   interface
      integer(c_int) function mfcore_activation_piecewise_linear(count, knots, jumps, offset, left_slope, created) bind(c)
         import :: c_double, c_int, c_int64_t, c_ptr
         integer(c_int64_t), value :: count
         real(c_double), intent(in) :: knots(*), jumps(*)
         real(c_double), value :: offset, left_slope
         type(c_ptr), intent(out) :: created
      end function

      integer(c_int) function mfcore_activation_polynomial(count, coefficients, created) bind(c)
         import :: c_double, c_int, c_int64_t, c_ptr
         integer(c_int64_t), value :: count
         real(c_double), intent(in) :: coefficients(*)
         type(c_ptr), intent(out) :: created
      end function

      integer(c_int) function mfcore_activation_hermite(count, coefficients, created) bind(c)
         import :: c_double, c_int, c_int64_t, c_ptr
         integer(c_int64_t), value :: count
         real(c_double), intent(in) :: coefficients(*)
         type(c_ptr), intent(out) :: created
      end function

      integer(c_int) function mfcore_activation_custom(function, user, created) bind(c)
         import :: c_funptr, c_int, c_ptr
         type(c_funptr), value :: function
         type(c_ptr), value :: user
         type(c_ptr), intent(out) :: created
      end function

      subroutine mfcore_activation_free(activation) bind(c)
         import :: c_ptr
         type(c_ptr), value :: activation
      end subroutine

      integer(c_int) function mfcore_create_on(activation, a, b, neurons, d, theta, created) bind(c)
         import :: c_double, c_int, c_int64_t, c_ptr
         type(c_ptr), value :: activation
         integer(c_int), value :: a, b
         integer(c_int64_t), value :: neurons, d
         real(c_double), intent(inout), target :: theta(*)
         type(c_ptr), intent(out) :: created
      end function

      subroutine mfcore_free(network) bind(c)
         import :: c_ptr
         type(c_ptr), value :: network
      end subroutine

      integer(c_int) function mfcore_set_forces(network, ridge, temperature, seed) bind(c)
         import :: c_double, c_int, c_int64_t, c_ptr
         type(c_ptr), value :: network
         real(c_double), value :: ridge, temperature
         integer(c_int64_t), value :: seed
      end function

      integer(c_int) function mfcore_set_rates(network, a, b, w) bind(c)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value :: network
         real(c_double), value :: a, b, w
      end function

      integer(c_int) function mfcore_set_scale(network, alpha) bind(c)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value :: network
         real(c_double), value :: alpha
      end function

      integer(c_int) function mfcore_step(network, samples, x, y, h, threads) bind(c)
         import :: c_double, c_int, c_int64_t, c_ptr
         type(c_ptr), value :: network
         integer(c_int64_t), value :: samples
         real(c_double), intent(in) :: x(*), y(*)
         real(c_double), value :: h
         integer(c_int), value :: threads
      end function

      integer(c_int) function mfcore_predict(network, samples, x, f, threads) bind(c)
         import :: c_double, c_int, c_int64_t, c_ptr
         type(c_ptr), value :: network
         integer(c_int64_t), value :: samples
         real(c_double), intent(in) :: x(*)
         real(c_double), intent(out) :: f(*)
         integer(c_int), value :: threads
      end function

      integer(c_int) function mfcore_potentials(network, points, theta, samples, x, y, value, gradient, threads) bind(c)
         import :: c_double, c_int, c_int64_t, c_ptr
         type(c_ptr), value :: network
         integer(c_int64_t), value :: points, samples
         real(c_double), intent(in) :: theta(*), x(*), y(*)
         real(c_double), intent(out), optional :: value(*), gradient(*)
         integer(c_int), value :: threads
      end function

      integer(c_int64_t) function mfcore_row(network) bind(c)
         import :: c_int64_t, c_ptr
         type(c_ptr), value :: network
      end function

      integer(c_int) function mfcore_theta(network, theta) bind(c)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value :: network
         real(c_double), intent(out) :: theta(*)
      end function

      integer(c_int) function mfcore_density_create(axes, axis, nodes, weights, targets, features, decay, temperature, &
                                                    mass, created) bind(c)
         import :: c_double, c_int, c_int64_t, c_ptr, mfcore_axis
         integer(c_int), value :: axes
         type(mfcore_axis), intent(in) :: axis(*)
         integer(c_int64_t), value :: nodes
         real(c_double), intent(in) :: weights(*), targets(*), features(*)
         real(c_double), intent(in), optional :: decay(*)
         real(c_double), value :: temperature
         real(c_double), intent(inout), target :: mass(*)
         type(c_ptr), intent(out) :: created
      end function

      subroutine mfcore_density_free(density) bind(c)
         import :: c_ptr
         type(c_ptr), value :: density
      end subroutine

      integer(c_int) function mfcore_density_step(density, h) bind(c)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value :: density
         real(c_double), value :: h
      end function

      integer(c_int) function mfcore_density_bound(density, bound) bind(c)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value :: density
         real(c_double), intent(out) :: bound
      end function

      integer(c_int) function mfcore_density_risk(density, risk) bind(c)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value :: density
         real(c_double), intent(out) :: risk
      end function
   end interface

contains

   !> Texts of C are Fortran's here, without the null at their end.
   integer(c_int) function mfcore_create(activation, a, b, neurons, d, theta, created) result(code)
      character(*), intent(in) :: activation
      integer(c_int), intent(in) :: a, b
      integer(c_int64_t), intent(in) :: neurons, d
      real(c_double), intent(in) :: theta(*)
      type(c_ptr), intent(out) :: created
      interface
         integer(c_int) function create(activation, a, b, neurons, d, theta, created) bind(c, name="mfcore_create")
            import :: c_char, c_double, c_int, c_int64_t, c_ptr
            character(kind=c_char), intent(in) :: activation(*)
            integer(c_int), value :: a, b
            integer(c_int64_t), value :: neurons, d
            real(c_double), intent(in) :: theta(*)
            type(c_ptr), intent(out) :: created
         end function
      end interface
      code = create(trim(activation)//c_null_char, a, b, neurons, d, theta, created)
   end function

   integer(c_int) function mfcore_activation_named(name, created) result(code)
      character(*), intent(in) :: name
      type(c_ptr), intent(out) :: created
      interface
         integer(c_int) function named(name, created) bind(c, name="mfcore_activation_named")
            import :: c_char, c_int, c_ptr
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), intent(out) :: created
         end function
      end interface
      code = named(trim(name)//c_null_char, created)
   end function

   function mfcore_version() result(text)
      character(:), allocatable :: text
      interface
         type(c_ptr) function version() bind(c, name="mfcore_version")
            import :: c_ptr
         end function
      end interface
      text = text_of(version())
   end function

   function mfcore_level() result(text)
      character(:), allocatable :: text
      interface
         type(c_ptr) function level() bind(c, name="mfcore_level")
            import :: c_ptr
         end function
      end interface
      text = text_of(level())
   end function

   function mfcore_message() result(text)
      character(:), allocatable :: text
      interface
         type(c_ptr) function message() bind(c, name="mfcore_message")
            import :: c_ptr
         end function
      end interface
      text = text_of(message())
   end function

   function text_of(address) result(text)
      type(c_ptr), intent(in) :: address
      character(:), allocatable :: text
      character(kind=c_char), pointer :: letters(:)
      integer(c_size_t) :: length, i
      interface
         integer(c_size_t) function strlen(address) bind(c)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: address
         end function
      end interface
      length = strlen(address)
      call c_f_pointer(address, letters, [length])
      allocate (character(length) :: text)
      do i = 1, length
         text(i:i) = letters(i)
      end do
   end function
end module mfcore
