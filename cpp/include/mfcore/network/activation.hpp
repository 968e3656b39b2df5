#pragma once
// Activation functions sigma with two derivatives, evaluated on arrays.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mfcore/base/views.hpp"

namespace mfcore::inline MFCORE_LEVEL::inline network {

/// A function of the caller's: value[i] = sigma(z[i]) for i < n, and likewise the slope and the curvature
/// where their arrays are not null (a curvature is never wanted without a slope). n is a multiple of 64, and
/// no two arrays overlap. A number must have the same bits wherever it stands in z; several threads call at
/// once.
using SpanFunction = void(std::int64_t n, const double* z, double* value, double* slope, double* curvature,
                          void* user);

/// An activation function. The functions `relu()` and the like make whole ones; one that is put together by hand
/// is checked by whatever uses it.
struct Activation {
    /// Which function, by its name as in Python: "linear", "relu", "erf", "tanh", "sigmoid", "softplus",
    /// "gelu", "silu", "sin", "cos", "piecewise_linear", "polynomial", "hermite", "custom".
    class Kind {
    public:
        constexpr Kind() = default;  ///< linear
        Kind(const char* name);      ///< throws std::invalid_argument if no kind has this name
        const char* name() const;
        int place() const { return place_; }  ///< in the list of kinds
        bool operator==(const Kind&) const = default;

    private:
        int place_ = 0;
    };

    Kind kind;
    // linear, relu and piecewise_linear are all given by these four, always filled for them:
    //   sigma(t) = offset + left_slope t + sum_k jumps[k] (t - knots[k])_+
    double offset = 0;
    double left_slope = 1;
    std::vector<double> knots;  // strictly increasing
    std::vector<double> jumps;  // change of slope at each knot
    // polynomial: sum_k coefficients[k] t^k; hermite: sum_k coefficients[k] h_k(t), orthonormal
    // h_k = He_k / sqrt(k!)
    std::vector<double> coefficients;
    /// The function behind the kind "custom". sigma(0) and sigma'(0) must be finite.
    struct Span {
        SpanFunction* function = nullptr;
        void* user = nullptr;
        std::shared_ptr<const void> owner = {};  ///< of what must live as long as sigma
        bool curved = true;                      ///< gives curvatures
        double strip = 0;                        ///< see Facts; 0: sigma is averaged over samples alone
        std::vector<double> kinks = {};          ///< where sigma is not analytic, increasing
    };
    Span span = {};

    // Whole and valid activations. By hand, set `kind` and all that it needs.
    static Activation linear();
    static Activation relu();
    static Activation erf();
    static Activation tanh();
    static Activation sigmoid();
    static Activation softplus();
    static Activation gelu();
    static Activation silu();
    static Activation sin();
    static Activation cos();
    static Activation piecewise_linear(std::vector<double> knots, std::vector<double> jumps,
                                       double offset = 0, double left_slope = 0);
    static Activation polynomial(std::vector<double> coefficients);
    static Activation hermite(std::vector<double> coefficients);
    static Activation custom(Span span);

    bool is_piecewise() const;  ///< given by knots and jumps
    /// Throw std::invalid_argument naming what is wrong. All that takes an activation calls this, except
    /// evaluate(), is_piecewise() and facts().
    void validate() const;
};

/// The names of the kinds without parameters; named_activation() gives the activation of such a name.
std::vector<const char*> named_kinds();
Activation named_activation(const char* name);

/// The symmetry of sigma: sigma(-t) is sigma(t), -sigma(t) or neither.
enum class Parity { none, even, odd };

/// A smooth function as a step or a ramp under Gaussian noise: sigma(t) = offset + scale E X(t + V G), G ~
/// N(0, 1).
struct Blur {
    enum class Noise {
        none,       ///< sigma is not known to be of this form
        one,        ///< V = stretch
        kolmogorov  ///< V = stretch K with Kolmogorov's law: 2 K G is logistic
    };
    Noise noise = Noise::none;
    int order = 0;         ///< derivatives of the ramp: X is the ramp t_+ (0) or the step (1)
    bool density = false;  ///< sigma also has the term - E V^2 delta(t + V G)
    double offset = 0, scale = 1;
    double stretch = 1;
};

/// Known facts about an activation, for averages and integrals over it.
struct Facts {
    /// The closed forms of averages that hold.
    enum class Form {
        pieces,   ///< of a line and ramps
        powers,   ///< of sum_k coefficients[k] t^k
        hermite,  ///< of sum_k coefficients[k] h_k(t)
        erf,
        gelu,
        sine,  ///< sin t, or where the parity is even cos t
        other  ///< none: quadrature, by strip and growth
    };
    Form form = Form::other;
    Parity parity = Parity::none;
    bool polynomial = false;
    Index degree = 0;                    ///< |sigma(t)| <= C (1 + |t|^degree), of a polynomial its degree
    double strip = 0;                    ///< analytic for |Im t| < strip; 0 with knots, infinite if entire
    bool curved = true;                  ///< second derivatives are to be had
    std::span<const double> kinks = {};  ///< of sigma's: between them it has the strip
    double growth = 0;  ///< |sigma(x + i y)| grows at most like e^{growth y^2}; 0 unless entire
    Blur blur = {};

    /// True if sigma may grow faster than a power of t, as far as is known.
    bool may_grow() const { return form == Form::other && blur.noise == Blur::Noise::none; }
};
/// The facts of an activation.
Facts facts(const Activation& sigma);
/// Throws std::invalid_argument if no quadrature over a law of the inputs is known for sigma.
void require_analytic(const Activation& sigma);

/// value[i] = sigma(z[i]), slope[i] = sigma'(z[i]), curvature[i] = sigma''(z[i]); null outputs are skipped.
/// At a knot the slope is the left one; the curvature is that of the smooth pieces (0 for piecewise linear).
/// Outputs may be z itself. No allocation. NaN gives NaN, and a number the same bits wherever it stands in z.
/// Error in units in the last place, either precision: values of erf, softplus, sin and cos 2, sigmoid 3, tanh
/// and silu 5, gelu 8; their slopes and curvatures 10, also in the tails (of gelu and silu, which change sign: 3
/// epsilon absolute).
/// Magnitudes below 1e-304 (float: 1e-35) may be flushed to 0 in the tails.
template <class T>
void evaluate(const Activation& sigma, Index n, const T* z, T* value, T* slope = nullptr,
              T* curvature = nullptr);

extern template void evaluate(const Activation&, Index, const double*, double*, double*, double*);
extern template void evaluate(const Activation&, Index, const float*, float*, float*, float*);

}  // namespace mfcore::inline MFCORE_LEVEL::inline network
